"""Mail that may not go on: it is held for the account that refused it, and the person is asked, once.

Freezing the account, holding the mail and asking are one unit. Of several lanes that trip over the same
limit, one freezes it; the others find it frozen, and only hold their mail.
"""

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Iterable, Sequence

import msgspec

from postroom.clock import SECOND, Clock
from postroom.errors import AlreadyFrozen, AlreadySettled, PostroomError
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import Budget, Charge
from postroom.kernel.model import Message
from postroom.office import queues
from postroom.office.guards.budgets import STOPPED, BudgetGuard, conversation_of
from postroom.office.guards.loops import WHOLE_WAY, way_back
from postroom.office.guards.notices import Trip, list_answers, notice, warning
from postroom.office.guards.rules import GuardRules
from postroom.office.lanes.batches import Batch
from postroom.office.ports import RoomPort
from postroom.office.turns import outcomes

log = logging.getLogger("postroom.guards")

# Records of what guards did, by the name of the account.
KIND = "guard"
# A conversation that nobody continues is looked at again after this.
HELD_S = 30 * 24 * 3600
# What a stop leaves alone: answers on their way to the person, and the envelope of a combined answer, which
# closes itself when all that it waits for has ended.
KEPT = ("outbox/", "gather")


class BudgetRefusal(msgspec.Struct, frozen=True):
    """Mail that waits for an account, for a reason; or, with seconds, for others to settle."""

    account: str
    mail: tuple[Message, ...]
    reason: str = ""
    trip: Trip | None = None
    seconds: float | None = None


class BudgetHolds:
    def __init__(self, room: RoomPort, rules: GuardRules, clock: Clock) -> None:
        self._room = room
        self._rules = rules
        self._clock = clock

    async def turn_away(self, batch: Batch, agent: str, refused: list[BudgetRefusal]) -> None:
        """The rest of the batch is given back: it is claimed again at once, without what waits."""
        for each in refused:
            await self._refuse(agent, each)
        gone = {message.id for each in refused for message in each.mail}
        rest = [message for message in batch.messages if message.id not in gone]
        giving = [self._room.run(c.Release(**outcomes.held(message, agent))) for message in rest]
        await asyncio.gather(*giving, return_exceptions=True)

    async def _refuse(self, agent: str, refused: BudgetRefusal) -> None:
        commands, told = self._wait(agent, refused), []
        if refused.trip is not None:
            freezing, told = await self._tripped(agent, refused, refused.trip)
            commands = [*freezing, *commands]
        elif refused.reason == BudgetGuard.BUDGET:
            told = await self._tell_too(agent, refused)
        try:
            await self._run(agent, [*commands, *told])
        except AlreadySettled:
            # The person knows.
            await self._run(agent, commands)
        except AlreadyFrozen:
            # Another lane was quicker: its person knows, and ours is told like everybody who comes later.
            frozen = msgspec.structs.replace(refused, trip=None, reason=BudgetGuard.BUDGET)
            shared = refused.trip is not None and refused.trip.talk is None
            await self._refuse(agent, frozen if shared else msgspec.structs.replace(refused, trip=None))

    async def _run(self, agent: str, commands: Iterable[c.Command]) -> None:
        await self._room.run(c.Unit(commands=tuple(commands), actor=agent))

    def _wait(self, agent: str, refused: BudgetRefusal) -> list[c.Command]:
        held = [outcomes.held(message, agent) for message in refused.mail]
        if refused.seconds is not None:
            reason = f"others have set aside what is left of {refused.account}"
            return [c.Snooze(seconds=refused.seconds, reason=reason, **each) for each in held]
        if refused.reason == STOPPED:
            talk, reason = conversation_of(refused.mail[0]), "the conversation was stopped"
            return [c.CancelConversation(correlation_id=talk, reason=reason, keep=KEPT, actor=agent)]
        seconds, now = float(HELD_S), self._clock.now()
        if refused.reason == BudgetGuard.BUDGET:
            # Counted from the store's time, which is not this clock's while that was put back.
            seconds = max(0.0, (self._rules.end_of(refused.account, now) - now) / SECOND)
        return [c.Hold(account=refused.account, seconds=seconds, **each) for each in held]

    async def _tripped(
        self, agent: str, refused: BudgetRefusal, trip: Trip
    ) -> tuple[list[c.Command], list[c.Command]]:
        """What pauses it, and what asks the person."""
        freeze = c.Freeze(
            account=trip.account,
            reason=trip.guard.value,
            correlation_id=trip.talk,
            message_id=refused.mail[0].id,
            actor=agent,
        )
        cause = await self._person_behind(refused.mail[0])
        record = c.AddRecord(
            kind=KIND,
            key=trip.account,
            data={"event": "tripped", **msgspec.to_builtins(trip), **_reach(cause)},
            correlation_id=trip.talk,
            message_id=refused.mail[0].id,
            actor=agent,
        )
        log.warning("%s is frozen: the guard %s was reached by @%s", trip.account, trip.guard, agent)
        told = outcomes.tell(
            cause,
            agent,
            notice(trip, self._rules.days.zone),
            kind="office.notice",
            choices=list_answers(trip),
        )
        if trip.talk is None:
            told = [*_once(f"{trip.account} {trip.limit} {_person(cause)}", agent), *told]
        return [freeze, record], told

    async def _tell_too(self, agent: str, refused: BudgetRefusal) -> list[c.Command]:
        """A budget that others used up stops this person too, who hears of it once."""
        cause = await self._person_behind(refused.mail[0])
        record = await self._room.latest_record(KIND, refused.account)
        if record is None or record.data.get("event") != "tripped":
            return []
        fields = {name: record.data[name] for name in Trip.__struct_fields__ if name in record.data}
        trip = msgspec.convert(fields, Trip)
        told = outcomes.tell(cause, agent, notice(trip, self._rules.days.zone), kind="office.notice")
        return [*_once(f"{trip.account} {trip.limit} {_person(cause)}", agent), *told]

    async def _person_behind(self, message: Message) -> Message:
        """The nearest message on the way back whose channel somebody reads, however long the way is."""
        if message.channel is not None and message.channel not in queues.SILENT:
            return message
        async for cause in way_back(self._room, message, WHOLE_WAY):
            if cause.channel is not None and cause.channel not in queues.SILENT:
                return cause
        return message

    async def warn(self, paid: Sequence[Charge], primary: Message, agent: str) -> None:
        """Once for each budget that has come near its end. To miss it is no harm."""
        with contextlib.suppress(PostroomError):
            known = await self._room.accounts(*(charge.account for charge in paid))
            for charge in paid:
                if (limit := self._near(charge, known[charge.account])) is not None:
                    text = warning(charge.account, known[charge.account].spent, limit)
                    told = outcomes.tell(
                        await self._person_behind(primary), agent, text, kind="office.notice"
                    )
                    with contextlib.suppress(AlreadySettled):
                        await self._run(agent, [*_once(f"warned {charge.account} {limit}", agent), *told])

    def _near(self, charge: Charge, account: Budget) -> int | None:
        limit = charge.limit if account.limit is None else account.limit
        near = bool(limit and account.spent and account.spent >= self._rules.warn_at * limit)
        return limit if near else None


def _once(what: str, agent: str) -> list[c.Command]:
    """A unit with these commits the first time only: what was settled is remembered, for some days."""
    holder = f"once/{hashlib.sha256(what.encode()).hexdigest()}"
    return [
        c.Reserve(holder=holder, charges=(Charge("notices", 0),), seconds=60, actor=agent),
        c.Settle(holder=holder, charges=(Charge("notices", 1),), actor=agent),
    ]


def _person(message: Message) -> str:
    return f"{message.channel}/{message.sender_id or message.sender}"


def _reach(message: Message) -> dict[str, str | None]:
    return {"channel": message.channel, "person": message.sender_id or message.sender}
