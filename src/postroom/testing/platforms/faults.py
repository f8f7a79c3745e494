"""What a platform does wrong, planned by the test: which call, which fault, how often.

A fault planned for a call that never comes fails the test at its end, so that no test passes for want of its
fault.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from random import Random
from typing import Literal

Moment = Literal["before", "during", "after"]


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong once."""


@dataclass(frozen=True)
class RateLimited(Fault):
    """The platform refuses for now and says how long to wait, in its own words."""

    retry_after: float = 1


@dataclass(frozen=True)
class ServerFailed(Fault):
    """The platform answers with an error of its own and has done nothing."""

    status: int = 502


@dataclass(frozen=True)
class ConnectionDropped(Fault):
    """The connection ends. `before`: nothing was done. `during`, `after`: it was done, and half or none of
    the answer arrives, which the caller cannot tell from nothing done."""

    when: Moment = "before"


@dataclass(frozen=True)
class SignedWrongly(Fault):
    """What the platform pushes carries a signature or secret that is not the right one."""


@dataclass(frozen=True)
class DeliveredTwice(Fault):
    """The platform pushes again what was already accepted."""


@dataclass(frozen=True, eq=False)
class CallHeld(Fault):
    """The call stops until the test lets it go on: `before` anything was done, or `after`, with the answer
    held.
    """

    when: Literal["before", "after"] = "before"
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        self.released.set()

    async def stop_here(self) -> None:
        self.reached.set()
        await self.released.wait()


@dataclass
class _Chance:
    pattern: str
    rate: float
    faults: Sequence[Fault]
    random: Random


class FaultPlan:
    """The faults still to come, by the name of the call, and those that happened."""

    def __init__(self) -> None:
        self._planned: list[tuple[str, Fault]] = []
        self._chances: list[_Chance] = []
        self.happened: list[tuple[str, Fault]] = []

    def plan(self, call: str, *faults: Fault) -> None:
        """The next calls of this name (`*` stands for anything) meet these faults, one each, in order."""
        self._planned.extend((call, fault) for fault in faults)

    def hold(self, call: str, when: Literal["before", "after"] = "before") -> CallHeld:
        held = CallHeld(when)
        self.plan(call, held)
        return held

    def at_random(self, rate: float, faults: Sequence[Fault], *, call: str = "*", seed: int = 0) -> None:
        """Each such call meets one of the faults with this probability: the same for the same seed."""
        self._chances.append(_Chance(call, rate, faults, Random(seed)))

    def stop(self) -> None:
        """No further faults, planned or random."""
        self._planned.clear()
        self._chances.clear()

    @property
    def outstanding(self) -> list[tuple[str, Fault]]:
        return list(self._planned)

    def take(self, call: str, *kinds: type[Fault]) -> Fault | None:
        """The fault of this call, if it has one of these kinds (any, when none is named)."""
        fault = self._next_planned(call, kinds) or self._next_random(call, kinds)
        if fault is not None:
            self.happened.append((call, fault))
        return fault

    def _next_planned(self, call: str, kinds: tuple[type[Fault], ...]) -> Fault | None:
        for index, (pattern, fault) in enumerate(self._planned):
            if fnmatchcase(call, pattern) and (not kinds or isinstance(fault, kinds)):
                del self._planned[index]
                return fault
        return None

    def _next_random(self, call: str, kinds: tuple[type[Fault], ...]) -> Fault | None:
        for chance in self._chances:
            if fnmatchcase(call, chance.pattern) and chance.random.random() < chance.rate:
                fault = chance.random.choice(chance.faults)
                if not kinds or isinstance(fault, kinds):
                    return fault
        return None
