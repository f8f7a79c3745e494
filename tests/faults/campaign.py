"""Many crashes in a row: which points of which seeds are tried, in which ways, and what came of them."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.faults.crashes import Broken, Trace, trace
from tests.faults.modes import CUTS, MODES, cuts, fault

LOST = ("LOST", "lost:")


@dataclass
class Tally:
    tried: Counter[str] = field(default_factory=Counter)
    broken: list[Broken] = field(default_factory=list)
    seeds: int = 0

    @property
    def points(self) -> int:
        return sum(self.tried.values())

    @property
    def lost(self) -> int:
        """Acknowledged messages that were not there afterwards."""
        return sum(mark in problem for each in self.broken for problem in each.problems for mark in LOST)

    def __str__(self) -> str:
        modes = ", ".join(f"{mode} {count}" for mode, count in sorted(self.tried.items()))
        text = f"tried {self.points} crash points ({modes}; {self.seeds} workloads), "
        text += f"{self.lost} acknowledged messages lost"
        return text + (f", {len(self.broken)} broken promises" if self.broken else "")


def points_of(run: Trace, mode: str) -> int:
    return run.reads if mode == "read" else len(run.points)


def try_seed(
    seed: int,
    tally: Tally,
    modes: tuple[str, ...] = MODES,
    *,
    point: int | None = None,
    faults: int | None = None,
) -> None:
    """All power cuts of a seed's run, and its disk faults: all, or about so many of each mode."""
    tally.seeds += 1
    try:
        run = trace(seed)
    except Broken as broken:
        tally.broken.append(broken)
        return
    for mode in modes:
        try:
            if mode in CUTS:
                for _ in cuts(seed, run, mode, point):
                    tally.tried[mode] += 1
                continue
            for number in _chosen(points_of(run, mode), point, faults, seed):
                tally.tried[mode] += 1
                fault(seed, mode, number)
        except Broken as broken:
            # One of a kind says enough; the next points of this mode would say it again.
            tally.tried[mode] += mode in CUTS
            tally.broken.append(broken)


def _chosen(points: int, point: int | None, faults: int | None, seed: int) -> range:
    if point is not None:
        return range(point, point + 1)
    step = 1 if faults is None else max(1, points // faults)
    return range(1 + seed % step, points + 1, step)


def campaign(
    points: int, modes: tuple[str, ...], first_seed: int, say: Callable[[str], None], most_broken: int = 10
) -> Tally:
    """Seed after seed, until so many points are tried; a few broken promises are enough to stop."""
    tally = Tally()
    said = time.monotonic()
    for seed in _count(first_seed):
        try_seed(seed, tally, modes)
        if tally.points >= points or len(tally.broken) >= most_broken:
            return tally
        if time.monotonic() - said > 10:
            said = time.monotonic()
            say(f"seed {seed}: {tally}")
    raise AssertionError("seeds never end")


def _count(start: int) -> Iterator[int]:
    while True:
        yield start
        start += 1
