"""The gate before every turn: mail that may be worked on now has its cost set aside, and the other waits."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from postroom.clock import SECOND, Clock
from postroom.errors import AccountFrozen, LimitReached, PostroomError
from postroom.kernel.accounts import Account, Charge
from postroom.kernel.model import Message
from postroom.office.batches import Batch, team_of
from postroom.office.guards import accounts, prices
from postroom.office.guards.accounts import CONVERSATION, MESSAGES, OFFICE, Guard, conversation_of
from postroom.office.guards.loops import find_loop
from postroom.office.guards.notices import Trip
from postroom.office.guards.refusals import KIND, Refusals, Refused
from postroom.office.guards.rules import GuardRules
from postroom.office.guards.visits import Visit
from postroom.office.post import PostRoom

SHORTEST_WAIT_S, LONGEST_WAIT_S = 2.0, 300.0


Shared = list[tuple[str, int | None]]


class Gate:
    def __init__(self, room: PostRoom, rules: GuardRules, clock: Clock) -> None:
        self._room = room
        self._rules = rules
        self._clock = clock
        self._refusals = Refusals(room, rules, clock)

    @contextlib.asynccontextmanager
    async def admit(self, batch: Batch, agent: str) -> AsyncIterator[Visit | None]:
        """None: it waits now, or was given back; there is nothing to do about it."""
        visit = await self._enter(batch, agent)
        if visit is None:
            yield None
            return
        try:
            yield visit
        except BaseException:
            with contextlib.suppress(PostroomError):
                await visit.close()
            raise
        await self._refusals.warn(visit.money, batch.primary, agent)

    async def _enter(self, batch: Batch, agent: str) -> Visit | None:
        shared = self._shared(batch, agent)
        known = await self._room.accounts(*self._names(batch, agent, shared))
        refused = [found for talk in _talks(batch) if (found := await self._look(talk, batch, agent, known))]
        visit = Visit(self._room, self._rules, batch, agent, self._clock)
        if not refused:
            refused = await self._reserve(visit, batch, agent, shared, known)
        if not refused:
            return visit
        await self._refusals.turn_away(batch, agent, refused)
        return None

    # what is looked at

    def _names(self, batch: Batch, agent: str, shared: Shared) -> list[str]:
        names = [OFFICE, accounts.agent(agent), *(name for name, _ in shared)]
        for talk in _talks(batch):
            names += [accounts.conversation(talk), accounts.messages(talk), accounts.hops(talk)]
        return names

    def _shared(self, batch: Batch, agent: str) -> Shared:
        """Today's budgets that a turn of this agent is paid from, with their limits."""
        rules, day = self._rules, self._rules.days.of(self._clock.now())
        shared = [
            (accounts.whole_day(day), rules.daily),
            (accounts.agent(agent, day), rules.terms(agent).daily),
        ]
        team = team_of(batch.primary)
        if team is not None and team in rules.teams:
            shared.append((accounts.team(team, day), rules.teams[team]))
        return shared

    async def _look(self, talk: str, batch: Batch, agent: str, known: dict[str, Account]) -> Refused | None:
        """Whether a conversation is paused already, or must be now: too many hops, or a loop."""
        mail = tuple(message for message in batch.messages if conversation_of(message) == talk)
        money = known[accounts.conversation(talk)]
        if money.frozen is not None:
            return Refused(money.name, mail, money.frozen)
        own = known[accounts.hops(talk)].limit
        most = self._rules.hops if own is None else own
        farthest = max(mail, key=lambda message: message.hop)
        figures = self._figures(talk, agent, known)
        if farthest.from_agent is not None and farthest.hop > most:
            allowance = farthest.hop - 1 + self._rules.hops
            trip = Trip(guard=Guard.HOPS, hop=farthest.hop, limit=most, allowance=allowance, **figures)
            return Refused(money.name, mail, Guard.HOPS, trip)
        if farthest.hop <= min(self._rules.cycles, self._rules.repeats):
            return None
        record = await self._room.latest_record(KIND, money.name)
        since = record.created_at if record is not None else 0
        for message in mail:
            loop = await find_loop(self._room, message, self._rules, since)
            if loop is not None:
                whom = {"sender": loop.sender, "receiver": loop.receiver, "times": loop.times}
                return Refused(money.name, mail, loop.guard, Trip(guard=loop.guard, **whom, **figures))
        return None

    def _figures(self, talk: str, agent: str, known: dict[str, Account]) -> dict[str, Any]:
        return {
            "account": accounts.conversation(talk),
            "talk": talk,
            "agent": agent,
            "spent": known[accounts.conversation(talk)].spent,
            "served": known[accounts.messages(talk)].spent,
        }

    # what is set aside

    async def _reserve(
        self, visit: Visit, batch: Batch, agent: str, shared: Shared, known: dict[str, Account]
    ) -> list[Refused]:
        rules, day = self._rules, self._rules.days.of(self._clock.now())
        terms = rules.terms(agent)
        talk = conversation_of(batch.primary)
        limits = [*shared, (accounts.conversation(talk), rules.conversation)]
        effective = [limit if known[name].limit is None else known[name].limit for name, limit in limits]
        visit.reserved = prices.estimate(terms, known[accounts.agent(agent)].peak, rules, effective)
        limits += [(OFFICE, None), (accounts.agent(agent), None)]
        visit.money = tuple(Charge(name, visit.reserved, limit) for name, limit in limits)
        visit.counts = tuple(
            Charge(accounts.messages(each), len(_of(each, batch)), rules.messages) for each in _talks(batch)
        )
        visit.unpriced = (accounts.UNPRICED_TOKENS + day, accounts.UNPRICED_TURNS + day)
        # A conversation whose mail only rides along pays nothing, but must not be paused.
        visit.riding = tuple(Charge(accounts.conversation(each), 0) for each in _talks(batch) if each != talk)
        visit.seconds = terms.seconds
        visit.left = _left(visit.reserved, limits, known)
        try:
            await visit.reserve(visit.reserved)
        except AccountFrozen as error:
            name = error.data["account"]
            return [Refused(name, self._concerned(name, batch), error.data["reason"])]
        except LimitReached as error:
            return [self._limit_reached(error, batch, agent, known)]
        return []

    def _concerned(self, account: str, batch: Batch) -> tuple[Message, ...]:
        for talk in _talks(batch):
            if account in (accounts.conversation(talk), accounts.messages(talk)):
                return _of(talk, batch)
        return batch.messages

    def _limit_reached(
        self, error: LimitReached, batch: Batch, agent: str, known: dict[str, Account]
    ) -> Refused:
        name, limit, spent, wanted = (error.data[key] for key in ("account", "limit", "spent", "amount"))
        mail = self._concerned(name, batch)
        if spent + wanted <= limit:
            return Refused(name, mail, seconds=self._patience(error.data["since"]))
        if not name.startswith((CONVERSATION, MESSAGES)):
            trip = Trip(
                guard=Guard.BUDGET,
                account=name,
                agent=agent,
                limit=limit,
                wanted=wanted,
                spent=spent,
                until=self._rules.end_of(name, self._clock.now()),
            )
            return Refused(name, mail, Guard.BUDGET, trip)
        talk = conversation_of(mail[0])
        figures = self._figures(talk, agent, known)
        if name.startswith(MESSAGES):
            allowance = spent + max(self._rules.messages, wanted)
            trip = Trip(guard=Guard.MESSAGES, limit=limit, allowance=allowance, **figures)
        else:
            figures["spent"] = spent
            allowance = spent + max(self._rules.conversation or 0, wanted)
            trip = Trip(guard=Guard.COST, limit=limit, wanted=wanted, allowance=allowance, **figures)
        return Refused(accounts.conversation(talk), mail, trip.guard, trip)

    def _patience(self, since: int | None) -> float:
        """What others have set aside may come back. The longer it has taken, the later the next look."""
        waited = (self._clock.now() - (since or 0)) / SECOND if since else 0.0
        return min(max(waited / 2, SHORTEST_WAIT_S), LONGEST_WAIT_S)


def _left(reserved: int, limits: Shared, known: dict[str, Account]) -> int | None:
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
