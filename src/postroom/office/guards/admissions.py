"""Mail that was let in. Whatever becomes of it, what it cost is settled exactly once."""

import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from postroom.clock import Clock
from postroom.errors import AccountFrozen, LimitReached
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import Charge
from postroom.office.guards import prices
from postroom.office.guards.prices import Spent
from postroom.office.guards.rules import GuardRules
from postroom.office.lanes.batches import Batch
from postroom.office.ports import RoomPort
from postroom.office.turns.turn import TurnResult, cost_of_turn
from postroom.providers.protocol import Usage

# What is set aside anew is more than was used by this part, so that not every step is a commit.
GROWTH = 4


class TurnAdmission:
    """`money` and `counts` are the accounts it is paid from, with what was set aside."""

    def __init__(self, room: RoomPort, rules: GuardRules, batch: Batch, agent: str, clock: Clock) -> None:
        # An agent has one turn at a time: what an earlier admission of it set aside died with its process.
        self.lane = f"visit/{agent}/"
        self.holder = f"{self.lane}{uuid.uuid4().hex}"
        self.reserved = 0
        self.money: tuple[Charge, ...] = ()
        self.counts: tuple[Charge, ...] = ()
        self.riding: tuple[Charge, ...] = ()
        self.seconds = 0.0
        self.unpriced: tuple[str, str] = ("", "")
        self.left: int | None = None
        """What the narrowest of its budgets still has, with what is set aside; None without one."""
        self._room = room
        self._rules = rules
        self._clock = clock
        self._batch = batch
        self._agent = agent
        self._spent = Spent()
        self._under_way = 0
        self._begun = False

    def begins(self) -> None:
        """A turn begins: from here on it may cost something."""
        self._begun = True
        self._under_way = 1

    async def reserve(self, amount: int, also: Sequence[c.Command] = ()) -> None:
        """Set aside so much on all accounts, in the place of what was; raises when it is not to be had.
        `also` is committed with it."""
        money = tuple(msgspec.structs.replace(charge, amount=amount) for charge in self.money)
        reservation = c.Reserve(
            holder=self.holder,
            charges=(*money, *self.counts, *self.riding),
            seconds=self.seconds,
            supersedes=self.lane,
            **self.about,
        )
        await self._room.run(
            c.Unit(commands=(reservation, *also), actor=self._agent) if also else reservation
        )
        self.money, self.reserved = money, amount

    async def affords(self, usages: list[Usage]) -> bool:
        """Whether what the turn under way has used so far can be had; what is set aside grows with it."""
        if not self.reserved:
            return True
        known = await cost_of_turn(usages, self._clock.now())
        used = self._spent.amount + prices.of_usages(known.usd if known else None, usages, self._rules)
        if used <= self.reserved:
            return True
        for amount in (used + used // GROWTH, used):
            try:
                await self.reserve(amount)
            except LimitReached:
                continue
            except AccountFrozen:
                # Nothing more can be set aside; a turn under way may end, but not spend without a limit.
                return await self._fits(used)
            return True
        return False

    async def _fits(self, used: int) -> bool:
        """Whether all accounts have so much, beside what others have spent and set aside."""
        known = await self._room.accounts(*(charge.account for charge in self.money))
        for charge in self.money:
            account = known[charge.account]
            limit = charge.limit if account.limit is None else account.limit
            others = account.spent + account.reserved - self.reserved
            if limit is not None and others + used > limit:
                return False
        return True

    def took(self, turn: TurnResult) -> None:
        """A turn is over, whatever came of it."""
        self._under_way = 0
        self._spent += prices.cost(turn, self.reserved, self._rules)

    def settle(self, *, served: bool) -> c.Command:
        """To be committed with the outcome. Messages count when they are served, not when they are tried."""
        spent = self._spent
        charges = [Charge(charge.account, spent.amount) for charge in self.money]
        if served:
            charges += self.counts
        if spent.unpriced_turns:
            tokens, turns = self.unpriced
            charges += [Charge(tokens, spent.unpriced_tokens), Charge(turns, spent.unpriced_turns)]
        return c.Settle(holder=self.holder, charges=tuple(charges), **self.about)

    @property
    def about(self) -> dict[str, Any]:
        primary = self._batch.primary
        return {
            "message_id": primary.id,
            "correlation_id": primary.correlation_id,
            "actor": self._agent,
        }

    async def close(self) -> None:
        """After an end that was not the usual one: the claim was lost, or the work was broken off."""
        if not self._begun:
            await self._room.run(c.ReleaseReservation(holder=self.holder, **self.about))
            return
        if self._under_way:
            # It was broken off in the middle, and nobody will ever know what it has used.
            self._spent += Spent(amount=self.reserved, unpriced_turns=1)
        await self._room.run(self.settle(served=False))
