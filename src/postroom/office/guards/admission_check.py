"""The gate before every turn: mail that may be worked on now has its cost set aside, and the other waits."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from postroom.clock import SECOND, Clock
from postroom.errors import AccountFrozen, LimitReached, PostroomError
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import Budget, Charge
from postroom.kernel.model import Message
from postroom.office.guards import budgets, prices
from postroom.office.guards.admissions import TurnAdmission
from postroom.office.guards.budgets import CONVERSATION, MESSAGES, OFFICE, BudgetGuard, conversation_of
from postroom.office.guards.holds import KIND, BudgetHolds, BudgetRefusal
from postroom.office.guards.loops import find_loop
from postroom.office.guards.notices import Trip
from postroom.office.guards.rules import GuardRules
from postroom.office.lanes.batches import Batch, team_of
from postroom.office.ports import RoomPort

SHORTEST_WAIT_S, LONGEST_WAIT_S = 2.0, 300.0


Shared = list[tuple[str, int | None]]


class AdmissionCheck:
    def __init__(self, room: RoomPort, rules: GuardRules, clock: Clock) -> None:
        self._room = room
        self._rules = rules
        self._clock = clock
        self._refusals = BudgetHolds(room, rules, clock)

    @contextlib.asynccontextmanager
    async def admit(
        self, batch: Batch, agent: str, also: Sequence[c.Command] = ()
    ) -> AsyncIterator[TurnAdmission | None]:
        """None: it waits now, or was given back; there is nothing to do about it. `also` is committed with
        what is set aside."""
        admission = await self._enter(batch, agent, also)
        if admission is None:
            yield None
            return
        try:
            yield admission
        except BaseException:
            with contextlib.suppress(PostroomError):
                await admission.close()
            raise
        await self._refusals.warn(admission.money, batch.primary, agent)

    async def _enter(self, batch: Batch, agent: str, also: Sequence[c.Command]) -> TurnAdmission | None:
        shared = self._shared(batch, agent)
        known = await self._room.accounts(*self._names(batch, agent, shared))
        refused = [found for talk in _talks(batch) if (found := await self._look(talk, batch, agent, known))]
        admission = TurnAdmission(self._room, self._rules, batch, agent, self._clock)
        if not refused:
            refused = await self._reserve(admission, batch, agent, shared, known, also)
        if not refused:
            return admission
        await self._refusals.turn_away(batch, agent, refused)
        return None

    # what is looked at

    def _names(self, batch: Batch, agent: str, shared: Shared) -> list[str]:
        names = [OFFICE, budgets.agent(agent), *(name for name, _ in shared)]
        for talk in _talks(batch):
            names += [budgets.conversation(talk), budgets.messages(talk), budgets.hops(talk)]
        return names

    def _shared(self, batch: Batch, agent: str) -> Shared:
        """Today's budgets that a turn of this agent is paid from, with their limits."""
        rules, day = self._rules, self._rules.days.of(self._clock.now())
        shared = [
            (budgets.whole_day(day), rules.daily),
            (budgets.agent(agent, day), rules.terms(agent).daily),
        ]
        team = team_of(batch.primary)
        if team is not None and team in rules.teams:
            shared.append((budgets.team(team, day), rules.teams[team]))
        return shared

    async def _look(
        self, talk: str, batch: Batch, agent: str, known: dict[str, Budget]
    ) -> BudgetRefusal | None:
        """Whether a conversation is paused already, or must be now: too many hops, or a loop."""
        mail = tuple(message for message in batch.messages if conversation_of(message) == talk)
        money = known[budgets.conversation(talk)]
        if money.frozen is not None:
            return BudgetRefusal(money.name, mail, money.frozen)
        own = known[budgets.hops(talk)].limit
        most = self._rules.hops if own is None else own
        farthest = max(mail, key=lambda message: message.hop)
        figures = self._figures(talk, agent, known)
        if farthest.from_agent is not None and farthest.hop > most:
            allowance = farthest.hop - 1 + self._rules.hops
            trip = Trip(guard=BudgetGuard.HOPS, hop=farthest.hop, limit=most, allowance=allowance, **figures)
            return BudgetRefusal(money.name, mail, BudgetGuard.HOPS, trip)
        if farthest.hop <= min(self._rules.cycles, self._rules.repeats):
            return None
        record = await self._room.latest_record(KIND, money.name)
        since = record.created_at if record is not None else 0
        for message in mail:
            loop = await find_loop(self._room, message, self._rules, since)
            if loop is not None:
                whom = {"sender": loop.sender, "receiver": loop.receiver, "times": loop.times}
                return BudgetRefusal(money.name, mail, loop.guard, Trip(guard=loop.guard, **whom, **figures))
        return None

    def _figures(self, talk: str, agent: str, known: dict[str, Budget]) -> dict[str, Any]:
        return {
            "account": budgets.conversation(talk),
            "talk": talk,
            "agent": agent,
            "spent": known[budgets.conversation(talk)].spent,
            "served": known[budgets.messages(talk)].spent,
        }

    # what is set aside

    async def _reserve(
        self,
        admission: TurnAdmission,
        batch: Batch,
        agent: str,
        shared: Shared,
        known: dict[str, Budget],
        also: Sequence[c.Command],
    ) -> list[BudgetRefusal]:
        rules, day = self._rules, self._rules.days.of(self._clock.now())
        terms = rules.terms(agent)
        talk = conversation_of(batch.primary)
        limits = [*shared, (budgets.conversation(talk), rules.conversation)]
        effective = [limit if known[name].limit is None else known[name].limit for name, limit in limits]
        admission.reserved = prices.estimate(terms, known[budgets.agent(agent)].peak, rules, effective)
        limits += [(OFFICE, None), (budgets.agent(agent), None)]
        admission.money = tuple(Charge(name, admission.reserved, limit) for name, limit in limits)
        admission.counts = tuple(
            Charge(budgets.messages(each), len(_of(each, batch)), rules.messages) for each in _talks(batch)
        )
        admission.unpriced = (budgets.UNPRICED_TOKENS + day, budgets.UNPRICED_TURNS + day)
        # A conversation whose mail only rides along pays nothing, but must not be paused.
        others = [each for each in _talks(batch) if each != talk]
        admission.riding = tuple(Charge(budgets.conversation(each), 0) for each in others)
        admission.seconds = terms.seconds
        admission.left = _left(admission.reserved, limits, known)
        try:
            await admission.reserve(admission.reserved, also)
        except AccountFrozen as error:
            name = error.data["account"]
            return [BudgetRefusal(name, self._concerned(name, batch), error.data["reason"])]
        except LimitReached as error:
            return [self._limit_reached(error, batch, agent, known)]
        return []

    def _concerned(self, account: str, batch: Batch) -> tuple[Message, ...]:
        for talk in _talks(batch):
            if account in (budgets.conversation(talk), budgets.messages(talk)):
                return _of(talk, batch)
        return batch.messages

    def _limit_reached(
        self, error: LimitReached, batch: Batch, agent: str, known: dict[str, Budget]
    ) -> BudgetRefusal:
        name, limit, spent, wanted = (error.data[key] for key in ("account", "limit", "spent", "amount"))
        mail = self._concerned(name, batch)
        if spent + wanted <= limit:
            return BudgetRefusal(name, mail, seconds=self._patience(error.data["since"]))
        if not name.startswith((CONVERSATION, MESSAGES)):
            trip = Trip(
                guard=BudgetGuard.BUDGET,
                account=name,
                agent=agent,
                limit=limit,
                wanted=wanted,
                spent=spent,
                until=self._rules.end_of(name, self._clock.now()),
            )
            return BudgetRefusal(name, mail, BudgetGuard.BUDGET, trip)
        talk = conversation_of(mail[0])
        figures = self._figures(talk, agent, known)
        if name.startswith(MESSAGES):
            allowance = spent + max(self._rules.messages, wanted)
            trip = Trip(guard=BudgetGuard.MESSAGES, limit=limit, allowance=allowance, **figures)
        else:
            figures["spent"] = spent
            allowance = spent + max(self._rules.conversation or 0, wanted)
            trip = Trip(guard=BudgetGuard.COST, limit=limit, wanted=wanted, allowance=allowance, **figures)
        return BudgetRefusal(budgets.conversation(talk), mail, trip.guard, trip)

    def _patience(self, since: int | None) -> float:
        """What others have set aside may come back. The longer it has taken, the later the next look."""
        waited = (self._clock.now() - (since or 0)) / SECOND if since else 0.0
        return min(max(waited / 2, SHORTEST_WAIT_S), LONGEST_WAIT_S)


def _left(reserved: int, limits: Shared, known: dict[str, Budget]) -> int | None:
    """What the narrowest budget has beside what others have set aside."""
    left = []
    for name, limit in limits:
        account = known[name]
        most = limit if account.limit is None else account.limit
        if most is not None:
            left.append(most - account.spent - account.reserved)
    return max(min(left), reserved) if left and reserved else None


def _talks(batch: Batch) -> list[str]:
    """The conversations of a batch, the one that is answered first."""
    return list(dict.fromkeys(conversation_of(message) for message in batch.messages))


def _of(talk: str, batch: Batch) -> tuple[Message, ...]:
    return tuple(message for message in batch.messages if conversation_of(message) == talk)
