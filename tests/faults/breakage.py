"""How a disk fails: which of its calls raise, from which point on, and for how long."""

import random

from tests.faults.disk import Disk, Point
from tests.faults.vfs import full_error, io_error

# One write or sync fails; a sync fails and forgets what it should have synced; the disk is full once, or for
# a while; one read fails; everything fails for a while, as on a disk unplugged; everything fails for ever.
FAULTS = ("error", "forget", "full", "full-while", "read", "away", "dead")


class Breakage:
    """`fired` holds what failed so far."""

    def __init__(self, disk: Disk, mode: str, at: int, rng: random.Random) -> None:
        self._disk = disk
        self._mode = mode
        self._at = at
        self._rng = rng
        self._left = {"full-while": rng.randrange(2, 40), "away": rng.randrange(2, 60), "dead": 10**9}.get(
            mode, 1
        )
        self.fired: list[Point | str] = []
        disk.before = self._before
        disk.reading = self._reading

    def mend(self) -> None:
        self._disk.before = self._disk.reading = None

    def _reading(self, name: str) -> None:
        single = self._mode == "read" and self._disk.reads == self._at
        all_fail = self._mode in ("away", "dead") and self.fired
        if (single or all_fail) and self._left > 0:
            self._left -= 1
            self.fired.append(name)
            raise io_error("read")

    def _before(self, point: Point) -> None:
        if self._mode == "read" or self._disk.points < self._at or self._left <= 0:
            return
        self._left -= 1
        self.fired.append(point)
        if self._mode in ("full", "full-while"):
            raise full_error(point.kind)
        if self._mode == "forget" and point.kind == "sync":
            self._disk.forget_unsynced(point.file, self._rng)
        raise io_error(point.kind)
