"""One crash at a time: a seeded workload on a disk of our own, and the history held against what is left.

A power cut needs no run of its own: up to the cut nothing differs from the run without faults, so the points
recorded there give the disk at every cut. A disk that fails changes what follows, so that is its own run.
"""

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw

from postroom.clock import ManualClock
from postroom.errors import PostroomError
from postroom.ids import SeededIds
from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage
from postroom.kernel.reader import Reader
from postroom.runtime.core import RoomCore, RoomOptions
from postroom.stores.sqlite import SqliteStore
from tests.faults import tables
from tests.faults.callers import Caller
from tests.faults.disk import Disk, Image, Point
from tests.faults.history import History
from tests.faults.vfs import FaultVFS
from tests.faults.workload import PRUNED_QUEUES, Workload, furnish, retention

PATH = Path("/room/postroom.db")
DAY_S = 24 * 3600.0


class Leak(Exception):
    """What was opened was not closed."""


def steps_of(seed: int) -> int:
    return 8 + seed % 13


def is_fresh(seed: int) -> bool:
    """Every eighth seed begins on an empty disk, so that making the file is crashed into as well."""
    return seed % 8 == 0


def _tune(store: SqliteStore, seed: int) -> None:
    """Checkpoints and spills, rare in small runs, are made common in some."""
    every = (1, 6, 25, 4000)[seed // 2 % 4]
    if seed % 3 == 1:
        store._db.pragma("cache_size", 12)

    def checkpoint(db: apsw.Connection, name: str, pages: int) -> int:
        # As SQLite's own hook: a checkpoint that fails is tried again later. (That hook cannot be used, since
        # apsw raises what a Python file layer raised, even when SQLite has dealt with it.)
        if pages >= every:
            with contextlib.suppress(apsw.Error):
                db.wal_checkpoint(name)
        return apsw.SQLITE_OK

    store._db.set_wal_hook(checkpoint)


class World:
    """An open store on a disk, with a caller who keeps a history."""

    def __init__(
        self, disk: Disk, seed: int, history: History, clock: ManualClock, *, examined: bool = False
    ) -> None:
        self.disk = disk
        self.clock = clock
        self.history = history
        self.vfs = FaultVFS(disk)
        self.faults: list[Point | str] = []
        self.core: RoomCore | None = None
        self.store = self._open()
        if examined:
            # Nobody looks at this disk again, so closing it need not tidy it.
            self.store._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        else:
            _tune(self.store, seed)
        options = RoomOptions(
            actor="caller",
            housekeeping=False,
            clock=clock,
            ids=SeededIds(-1 - seed if examined else seed),
            seed=seed,
            retention=retention(seed),
        )
        self.core = RoomCore(self.store, options)
        try:
            self.core.committer.execute(c.CreateScope(slug="default", exist_ok=True, actor="caller"))
        except Exception:
            self.close()
            raise
        self.caller = Caller(self.core, history, self.faults)

    def _open(self) -> SqliteStore:
        try:
            return SqliteStore(PATH, vfs=self.vfs.name, clock=self.clock)
        except Exception:
            self.vfs.unregister()
            if self._leaked():
                raise Leak("a failed opening left its connection to the file open") from None
            raise

    def _leaked(self) -> bool:
        left = [db for db in apsw.connections() if db.open_vfs == self.vfs.name]
        if left:
            self.disk.before = self.disk.reading = None
        for db in left:
            db.close(True)
        return bool(left)

    def furnished(self) -> bool:
        with self.store.reader() as reads:
            return Reader(reads).queue("default", "default", "jobs") is not None

    def close(self) -> None:
        """Whatever the disk says: after a crash nothing more can be asked of it."""
        if self.core is not None:
            # apsw also raises what SQLite passes over when it closes.
            with contextlib.suppress(PostroomError, apsw.Error):
                self.core.close()
        self.vfs.unregister()


@functools.cache
def furnished() -> Image:
    """A disk with a room that was furnished and closed well."""
    disk = Disk()
    world = World(disk, 0, History(), ManualClock())
    furnish(world.caller.ask)
    world.close()
    return disk.kept()


def begin(seed: int) -> Image:
    return {} if is_fresh(seed) else furnished()


def work(world: World, seed: int) -> Iterator[None]:
    """The seed's workload, step by step."""
    if is_fresh(seed):
        furnish(world.caller.ask)
    workload = Workload(seed, world.caller, world.clock)
    for _ in range(steps_of(seed)):
        workload.step()
        yield


@dataclass
class Trace:
    """A run without faults: its points, and how long the history was and what the rows said at each."""

    history: History
    points: list[tuple[Point, int]]
    marks: dict[int, int]
    reads: int
    now: int

    def allowed(self, length: int) -> set[int]:
        """What the rows may say after a cut: as before the operation that was under way, or as after it.

        While the room is being opened (length -1) they may say anything that opening may leave.
        """
        before = [at for at in self.marks if at <= length]
        after = [at for at in self.marks if at > length]
        if not before:
            return set()
        return {self.marks[max(before)], *([self.marks[min(after)]] if after else [])}


def trace(seed: int) -> Trace:
    disk, history, clock = Disk(begin(seed)), History(retention=PRUNED_QUEUES), ManualClock()
    points: list[tuple[Point, int]] = []
    marks: dict[int, int] = {}
    disk.before = lambda point: points.append((point, len(history.log) if marks else -1))
    world = World(disk, seed, history, clock)

    def mark() -> None:
        with disk.unwatched():
            marks[len(history.log)] = tables.fingerprint(world.store._db)

    mark()
    world.caller.after = mark
    for _ in work(world, seed):
        pass
    reads = disk.reads
    problems = world.caller.problems + history.check(world.store)
    world.close()
    if problems:
        raise Broken(seed, "none", 0, problems)
    return Trace(history, points, marks, reads, clock.now())


class Broken(Exception):
    """A promise was broken; carries everything needed to see it again."""

    def __init__(self, seed: int, mode: str, point: int, problems: list[str]) -> None:
        self.where = f"--seed {seed} --mode {mode} --point {point}"
        self.problems = problems
        super().__init__(f"{self.where}\n  " + "\n  ".join(problems[:12]))


def examine(
    image: Image,
    seed: int,
    history: History,
    length: int | None,
    allowed: set[int],
    now: int,
    *,
    settled: bool,
) -> list[str]:
    """Open what the crash left, hold the history against it, then use it."""
    clock = ManualClock(now)
    try:
        world = World(Disk(image), seed, history, clock, examined=True)
    except Exception as error:
        return [f"reopen: {type(error).__name__}: {error}"]
    try:
        problems = history.check(world.store, length, settled=settled)
        if allowed and tables.fingerprint(world.store._db) not in allowed:
            problems.append("state: the rows are neither as before nor as after the operation under way")
        return problems + _probe(world, history, length)
    finally:
        world.close()


def _probe(world: World, history: History, length: int | None) -> list[str]:
    """The store works: what waits can be had, and what is sent arrives."""
    assert world.core is not None
    probe = History(history.log[:length], history.retention)
    caller = Caller(world.core, probe, [], "probe")
    world.clock.advance(DAY_S)
    queues = ("default/_audit", "default/jobs") if world.furnished() else ("default/_audit",)
    sent = caller.ask(c.Publish(queue="default/_audit", messages=[NewMessage(body={"mark": "probe"})]))
    taken = caller.ask(c.Claim(queues=queues, limit=None))
    if not sent or not taken or sent[0].id not in {stored.row.id for stored in taken.messages}:
        return [f"probe: what was sent to the reopened store did not arrive: {probe.log[-4:]}"]
    for stored in taken.messages[:2]:
        caller.ask(c.Complete(message_id=stored.row.id, token=stored.row.token or ""))
    return caller.problems + [f"probe: {entry}" for entry in probe.log[-8:] if "unnamed" in entry]
