"""The ways a crash can come: power cuts of a recorded run, and runs whose disk begins to fail."""

import random
from collections.abc import Callable, Iterator

from postroom.clock import ManualClock
from postroom.errors import PostroomError
from postroom.kernel import commands as c
from tests.faults.breakage import FAULTS, Breakage
from tests.faults.callers import Hang
from tests.faults.crashes import Broken, Leak, Trace, World, begin, examine, work
from tests.faults.disk import Disk, Image, Point
from tests.faults.history import History
from tests.faults.workload import PRUNED_QUEUES

# Power goes: everything unsynced is lost; random sectors of it survive; all of it does (a killed process);
# or it goes again while the room is being opened after the first cut.
CUTS = ("cut", "torn", "kept", "twice")

MODES = (*CUTS, *FAULTS)
STEPS_AFTER = 5


def _rng(seed: int, mode: str, point: int) -> random.Random:
    return random.Random(f"{seed} {mode} {point}")


def cuts(seed: int, run: Trace, mode: str, only: int | None = None) -> Iterator[int]:
    """Every power cut of a run; raises `Broken` at the first that breaks a promise."""
    disk = Disk(begin(seed))
    for number, (point, length) in enumerate(run.points, 1):
        if only in (None, number):
            image = _after_cut(disk, seed, run, mode, number, point)
            allowed = run.allowed(length)
            problems = examine(image, seed, run.history, max(length, 0), allowed, run.now, settled=True)
            if problems:
                raise Broken(seed, mode, number, problems)
            yield number
        disk.happen(point)


def _after_cut(disk: Disk, seed: int, run: Trace, mode: str, number: int, point: Point) -> Image:
    rng = _rng(seed, mode, number)
    if mode == "cut":
        return disk.cut()
    if mode == "kept":
        return disk.kept()
    if mode == "torn":
        return disk.torn(rng, point)
    return _cut_again(disk.torn(rng, point), seed, run.now, rng)


def _cut_again(image: Image, seed: int, now: int, rng: random.Random) -> Image:
    """Open what the first cut left, and cut the power again at some point of the opening."""
    disk, left = Disk(image), rng.randrange(1, 40)
    found: list[Image] = []

    def before(point: Point) -> None:
        if not found and disk.points == left:
            found.append(disk.torn(rng, point))

    disk.before = before
    World(disk, seed, History(), ManualClock(now)).close()
    return found[0] if found else disk.torn(rng)


def fault(seed: int, mode: str, at: int) -> None:
    """A run whose disk fails at one point; raises `Broken` when a promise is broken."""
    problems = _Faulty(seed, mode, at).run()
    if problems:
        raise Broken(seed, mode, at, problems)


class _Faulty:
    def __init__(self, seed: int, mode: str, at: int) -> None:
        self.seed, self.mode = seed, mode
        self.rng = _rng(seed, mode, at)
        self.disk = Disk(begin(seed))
        self.breakage = Breakage(self.disk, mode, at, self.rng)
        self.fired = self.breakage.fired
        self.history = History(retention=PRUNED_QUEUES)
        self.clock = ManualClock()

    def run(self) -> list[str]:
        world = self._open()
        if world is None:
            return self._crash(settled=False)
        if isinstance(world, list):
            return world
        try:
            problems = self._use(world)
        except Hang as hang:
            # Its threads wait for each other, so it cannot be closed either.
            return [f"hang: {hang}"]
        try:
            if self.mode == "dead":
                return problems + self._crash(settled=False)
            if not problems:
                # The next operation works; and with it, what failed before is overwritten for good.
                self.breakage.mend()
                world.caller.ask(c.AddRecord(kind="last", key="last", data={}))
                with self.disk.unwatched():
                    problems = world.caller.problems + self.history.check(world.store)
            return problems + self._crash(settled=True)
        finally:
            world.close()

    def _open(self) -> World | list[str] | None:
        """None when the disk is dead; a disk that failed for a moment is opened again."""
        for _ in range(60):
            before = len(self.fired)
            try:
                world = World(self.disk, self.seed, self.history, self.clock)
            except PostroomError as error:
                if len(self.fired) == before:
                    return [f"recovery: opening failed without a fault: {error}"]
                if self.mode == "dead":
                    return None
            except Leak as leak:
                return [f"leak: {leak}"]
            except Exception as error:
                return [f"error: opening failed without a name: {type(error).__name__}: {error}"]
            else:
                world.caller.faults = self.fired
                return world
        return ["recovery: the store never opened again"]

    def _use(self, world: World) -> list[str]:
        """Work until a little after the fault; look at the rows as soon as it has happened."""
        problems: list[str] = []
        seen = 0

        def look() -> None:
            nonlocal seen
            if len(self.fired) > seen and self.mode != "dead" and not problems:
                seen = len(self.fired)
                with self.disk.unwatched():
                    problems.extend(self.history.check(world.store))

        world.caller.after = look
        left = STEPS_AFTER
        for _ in work(world, self.seed):
            left -= bool(self.fired)
            if problems or not left:
                break
        return problems + world.caller.problems

    def _crash(self, *, settled: bool) -> list[str]:
        end: Callable[[], Image] = self.rng.choice(
            (self.disk.cut, self.disk.kept, lambda: self.disk.torn(self.rng))
        )
        now = self.clock.now()
        return examine(end(), self.seed, self.history, None, set(), now, settled=settled)
