"""What a person decides about what is paused: one conversation, a budget, or everything.

Each is one unit, so a crash leaves it done or not done; done again, it changes nothing or says so.
"""

from typing import Any

import msgspec

from postroom.errors import AlreadyFrozen, Conflict, InvalidField
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import Budget
from postroom.kernel.model import Record
from postroom.office.guards import budgets as accounts
from postroom.office.guards.budgets import CONVERSATION, DOLLAR, OFFICE, PAUSED, STOPPED, BudgetGuard
from postroom.office.guards.holds import KEPT, KIND
from postroom.office.guards.rules import GuardRules
from postroom.office.ports import RoomPort

PAGE = 200


class NotPaused(Conflict):
    """The conversation "{conversation}" is not paused. Nothing was changed."""

    code = "NOT_PAUSED"


class LimitTooLow(Conflict):
    """{spent} are spent already, so a limit of {limit} would change nothing. Give a higher one."""

    code = "LIMIT_TOO_LOW"


class PausedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """`guard` is what stopped it, or `stopped`. `channel` and `person` say who was asked."""

    conversation: str
    guard: str
    spent: int
    agent: str = ""
    channel: str | None = None
    person: str | None = None
    since: int = 0


class BudgetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A budget as it stands, in micro-dollars. A frozen one was reached, and mail waits for it."""

    account: str
    limit: int | None
    spent: int
    reserved: int
    frozen: bool


async def paused_conversations(room: RoomPort) -> list[PausedConversation]:
    found: list[PausedConversation] = []
    after = ""
    while page := await room.list_accounts(CONVERSATION, frozen=True, after=after, limit=PAGE):
        for account in page:
            if account.frozen != STOPPED:
                found.append(await _described(room, account))
        after = page[-1].name
    return found


async def _described(room: RoomPort, account: Budget) -> PausedConversation:
    record = await room.latest_record(KIND, account.name)
    data = record.data if record is not None else {}
    return PausedConversation(
        conversation=data.get("talk") or account.name.removeprefix(CONVERSATION),
        guard=account.frozen or "",
        spent=account.spent,
        agent=data.get("agent", ""),
        channel=data.get("channel"),
        person=data.get("person"),
        since=account.updated_at,
    )


async def resume(room: RoomPort, conversation: str, *, actor: str | None = None) -> int:
    """As far again as the guard that stopped it allows; how many messages go on.

    One that was stopped is opened again: what was cancelled stays so, but dead letters can be replayed.
    """
    await _check_paused(room, conversation)
    record = await room.latest_record(KIND, accounts.conversation(conversation))
    raised = _allowance(conversation, record)
    return await _go_on(room, conversation, "continued", raised, actor)


async def raise_limit(
    room: RoomPort,
    conversation: str,
    *,
    usd: float | None = None,
    messages: int | None = None,
    hops: int | None = None,
    actor: str | None = None,
) -> int:
    """New limits for one conversation, which goes on if it was paused; how many messages go on."""
    limits = {
        accounts.conversation(conversation): None if usd is None else _money("usd", usd),
        accounts.messages(conversation): messages,
        accounts.hops(conversation): hops,
    }
    wanted = {name: limit for name, limit in limits.items() if limit is not None}
    if not wanted:
        raise InvalidField("limit", "is missing; give usd, messages or hops")
    known = await room.accounts(*wanted)
    for name, limit in wanted.items():
        _check_higher(name, known[name], limit)
    return await _go_on(room, conversation, "raised", wanted, actor)


async def stop(
    room: RoomPort, conversation: str, reason: str = "stopped by a person", *, actor: str | None = None
) -> int:
    """For good: every open message of the conversation is cancelled. How many there were.

    It need not be paused. Answers that are on their way are still delivered. Nobody is asked any more, so its
    account is closed, and forgotten like any other. Only a person who continues it opens it again.
    """
    who = actor or room.actor
    cancel = c.CancelConversation(correlation_id=conversation, reason=reason, keep=KEPT, actor=who)
    freeze = c.Freeze(
        account=accounts.conversation(conversation),
        reason=STOPPED,
        replace=True,
        final=True,
        correlation_id=conversation,
        actor=who,
    )
    try:
        answers = await room.run(
            c.Unit(commands=(freeze, cancel, _note(conversation, "stopped", {}, who)), actor=who)
        )
    except AlreadyFrozen:
        return await room.run(cancel)
    return answers[1]


async def raise_budget(room: RoomPort, account: str, usd: float, *, actor: str | None = None) -> int:
    """A new limit for a budget of one day (`agent/coder/2026-11-16`); how many messages go on.

    It ends with the day; for good, change the settings.
    """
    who = actor or room.actor
    limit = _money("usd", usd)
    _check_higher(account, (await room.accounts(account))[account], limit)
    commands = (
        c.SetLimit(account=account, limit=limit, actor=who),
        c.Thaw(account=account, actor=who),
        c.AddRecord(kind=KIND, key=account, data={"event": "raised", "limit": limit}, actor=who),
    )
    return (await room.run(c.Unit(commands=commands, actor=who)))[1]


async def reconsider(room: RoomPort, rules: GuardRules, now: int, *, actor: str | None = None) -> int:
    """After the settings have changed: what waits for a budget of today that has room again goes on."""
    thawed = 0
    for budget in await budgets(room, rules, now):
        if budget.frozen and (budget.limit is None or budget.spent < budget.limit):
            thawed += await room.run(c.Thaw(account=budget.account, actor=actor or room.actor))
    return thawed


async def budgets(room: RoomPort, rules: GuardRules, now: int) -> list[BudgetStatus]:
    """Today's budgets: the whole office, then agents, then teams."""
    day = rules.days.of(now)
    limits = {accounts.whole_day(day): rules.daily}
    limits |= {accounts.agent(agent, day): terms.daily for agent, terms in rules.agents.items()}
    limits |= {accounts.team(team, day): limit for team, limit in rules.teams.items()}
    known = await room.accounts(*limits)
    return [
        BudgetStatus(
            account=name,
            limit=limit if known[name].limit is None else known[name].limit,
            spent=known[name].spent,
            reserved=known[name].reserved,
            frozen=known[name].frozen is not None,
        )
        for name, limit in limits.items()
    ]


# everything at once


async def pause_all(room: RoomPort, *, actor: str | None = None) -> bool:
    """No agent begins a turn any more; turns under way end, and mail is still taken in. False: it was so."""
    try:
        await room.run(c.Freeze(account=OFFICE, reason=PAUSED, actor=actor or room.actor))
    except AlreadyFrozen:
        return False
    return True


async def resume_all(room: RoomPort, *, actor: str | None = None) -> int:
    """Everybody goes on; how many messages had been waiting."""
    return await room.run(c.Thaw(account=OFFICE, actor=actor or room.actor))


async def paused(room: RoomPort) -> bool:
    return (await room.accounts(OFFICE))[OFFICE].frozen is not None


def _money(field: str, usd: float) -> int:
    if isinstance(usd, bool) or not isinstance(usd, int | float) or not 0 <= usd <= 1_000_000:
        raise InvalidField(field, f"is {usd!r}, must be a sum from 0 to 1,000,000")
    return round(usd * DOLLAR)


def _check_higher(name: str, account: Budget, limit: int) -> None:
    if limit <= account.spent and account.spent:
        money = not name.startswith((accounts.MESSAGES, accounts.HOPS))
        show = accounts.dollars if money else str
        raise LimitTooLow(spent=show(account.spent), limit=show(limit))


async def _check_paused(room: RoomPort, conversation: str) -> None:
    name = accounts.conversation(conversation)
    frozen = (await room.accounts(name))[name].frozen
    if frozen is None:
        raise NotPaused(conversation=conversation)


def _allowance(conversation: str, record: Record | None) -> dict[str, int]:
    if record is None or record.data.get("event") != "tripped" or not record.data.get("allowance"):
        return {}
    names = {
        BudgetGuard.HOPS: accounts.hops,
        BudgetGuard.MESSAGES: accounts.messages,
        BudgetGuard.COST: accounts.conversation,
    }
    name = names.get(record.data["guard"])
    return {name(conversation): record.data["allowance"]} if name is not None else {}


async def _go_on(
    room: RoomPort, conversation: str, event: str, limits: dict[str, int], actor: str | None
) -> int:
    who = actor or room.actor
    name = accounts.conversation(conversation)
    if event == "raised" and (await room.accounts(name))[name].frozen == STOPPED:
        raise NotPaused(conversation=conversation)
    about: dict[str, Any] = {"correlation_id": conversation, "actor": who}
    commands = [
        *(c.SetLimit(account=account, limit=limit, **about) for account, limit in limits.items()),
        _note(conversation, event, limits, who),
        c.Thaw(account=name, **about),
    ]
    return (await room.run(c.Unit(commands=tuple(commands), actor=who)))[-1]


def _note(conversation: str, event: str, limits: dict[str, int], actor: str) -> c.Command:
    return c.AddRecord(
        kind=KIND,
        key=accounts.conversation(conversation),
        data={"event": event, "talk": conversation, "limits": limits},
        correlation_id=conversation,
        actor=actor,
    )
