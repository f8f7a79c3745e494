"""How it is measured: the participants in turn, every round in a fresh folder, and each one's median."""

import asyncio
import gc
import os
import random
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

Run = Callable[[Path], float]
Better = Literal["higher", "lower"]


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How much is measured."""

    rounds: int
    seconds: float
    batch: int
    backlog: int
    claims: int
    wakes: int
    bursts: int


FULL = Effort(rounds=19, seconds=0.3, batch=10_000, backlog=1_000_000, claims=300, wakes=500, bursts=200)
QUICK = Effort(rounds=1, seconds=0.05, batch=500, backlog=5_000, claims=10, wakes=20, bursts=3)


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """What one participant reached in one case: the median of its rounds."""

    case: str
    who: str
    unit: str
    value: float
    rounds: list[float]


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """A promise: a figure of ours against another's (or against a bound), and the target it has to reach."""

    case: str
    what: str
    value: float
    target: float
    better: Better = "higher"
    unit: str = "×"

    @property
    def passed(self) -> bool:
        return self.value >= self.target if self.better == "higher" else self.value <= self.target

    @property
    def margin(self) -> float:
        """How many times better than the target; 1 is just met."""
        return self.value / self.target if self.better == "higher" else self.target / self.value


class Outcome(msgspec.Struct):
    figures: list[Figure] = []
    ratios: list[Ratio] = []

    def add(self, other: "Outcome") -> None:
        self.figures += other.figures
        self.ratios += other.ratios


def figure(case: str, who: str, unit: str, rounds: Sequence[float]) -> Figure:
    return Figure(case=case, who=who, unit=unit, value=statistics.median(rounds), rounds=list(rounds))


def alternate(case: str, unit: str, runs: dict[str, Run], rounds: int, folder: Path) -> dict[str, Figure]:
    """Everybody in turn, in another order each round, so that a busy spell hits all alike.

    What the one before left unwritten is synced first: else whoever follows a relaxed writer pays for it.
    """
    measured: dict[str, list[float]] = {who: [] for who in runs}
    shuffle = random.Random(0).shuffle
    order = list(runs)
    for _ in range(rounds):
        shuffle(order)
        for who in order:
            place = Path(tempfile.mkdtemp(dir=folder))
            gc.collect()
            os.sync()
            try:
                measured[who].append(runs[who](place))
            finally:
                shutil.rmtree(place, ignore_errors=True)
    return {who: figure(case, who, unit, values) for who, values in measured.items()}


BURST = 20


def bursts(case: str, unit: str, steps: dict[str, Callable[[int], object]], count: int) -> dict[str, Figure]:
    """Short bursts in turn, for steps that mostly wait for the disk: its moods change within a second."""
    measured: dict[str, list[float]] = {who: [] for who in steps}
    shuffle = random.Random(0).shuffle
    order = list(steps)
    for step in steps.values():
        step(BURST)
    for _ in range(count):
        shuffle(order)
        for who in order:
            started = time.perf_counter()
            steps[who](BURST)
            measured[who].append(BURST / (time.perf_counter() - started))
    return {who: figure(case, who, unit, values) for who, values in measured.items()}


def paired(ours: Figure, other: Figure) -> float:
    """The median of the rounds' ratios: within a round the machine is about as busy for both."""
    return statistics.median(mine / theirs for mine, theirs in zip(ours.rounds, other.rounds, strict=True))


# How often something can be done in a second

WARM_UP = 0.3


class Pace:
    """One caller's count of what it did after the warm-up and before the end."""

    def __init__(self, seconds: float) -> None:
        self.start = time.perf_counter() + seconds * WARM_UP
        self._end = self.start + seconds
        self.last = self.start
        self.done = 0
        self.total = 0

    def tick(self) -> bool:
        """One more is done; whether to go on."""
        now = time.perf_counter()
        self.total += 1
        if now >= self.start:
            self.done += 1
            self.last = now
        return now < self._end


class Paced(msgspec.Struct, frozen=True):
    """How many a second, and how many in all, which must then be found in the store."""

    rate: float
    total: int


def _together(paces: list[Pace]) -> Paced:
    spent = max(pace.last for pace in paces) - min(pace.start for pace in paces)
    return Paced(sum(pace.done for pace in paces) / spent, sum(pace.total for pace in paces))


def by_threads(step: Callable[[], object], callers: int, seconds: float) -> Paced:
    paces = [Pace(seconds) for _ in range(callers)]

    def call(pace: Pace) -> None:
        step()
        while pace.tick():
            step()

    threads = [threading.Thread(target=call, args=(pace,)) for pace in paces]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _together(paces)


async def by_tasks(step: Callable[[], Awaitable[object]], callers: int, seconds: float) -> Paced:
    paces = [Pace(seconds) for _ in range(callers)]

    async def call(pace: Pace) -> None:
        await step()
        while pace.tick():
            await step()

    await asyncio.gather(*map(call, paces))
    return _together(paces)


def checked(paced: Paced, stored: int) -> float:
    """The rate, if what was acknowledged is what is there."""
    if stored != paced.total:
        raise AssertionError(f"{paced.total} were acknowledged, {stored} are stored")
    return paced.rate
