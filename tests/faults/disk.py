"""A disk in memory that knows what a power cut would leave: what is written is not yet what is durable.

Every write, truncate, sync and delete is a point. A sync makes one file durable, and with it the names in the
folder, as journalling file systems do.
"""

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

SECTOR = 512

Image = dict[str, bytes]


class Point(NamedTuple):
    """One thing done to the disk. `data` is None for everything but a write."""

    kind: str
    file: str
    at: int = 0
    data: bytes | None = None


class Blocks:
    """One file: its content, its durable content (None: the name is not durable), and what lies between."""

    __slots__ = ("current", "durable", "unsynced")

    def __init__(self, durable: bytes | None = None) -> None:
        self.durable = None if durable is None else bytearray(durable)
        self.current = bytearray(durable or b"")
        self.unsynced: list[Point] = []


def _apply(content: bytearray, point: Point) -> None:
    if point.data is None:
        del content[point.at :]
        content.extend(b"\0" * (point.at - len(content)))
        return
    end = point.at + len(point.data)
    if len(content) < point.at:
        content.extend(b"\0" * (point.at - len(content)))
    content[point.at : end] = point.data


class Disk:
    """`before` sees each point before it happens and may raise instead; `reading` does so for reads."""

    def __init__(self, image: Image | None = None) -> None:
        self.files = {name: Blocks(content) for name, content in (image or {}).items()}
        self.deleted: dict[str, bytes] = {}
        self.points = 0
        self.reads = 0
        self.before: Callable[[Point], None] | None = None
        self.reading: Callable[[str], None] | None = None
        self._unwatched = False

    def perform(self, point: Point) -> None:
        self.points += 1
        if self.before is not None:
            self.before(point)
        self.happen(point)

    def read(self, name: str, amount: int, offset: int) -> bytes:
        if not self._unwatched:
            self.reads += 1
            if self.reading is not None:
                self.reading(name)
        return bytes(self.files[name].current[offset : offset + amount])

    @contextlib.contextmanager
    def unwatched(self) -> Iterator[None]:
        """Reads of an onlooker neither count nor fail."""
        self._unwatched = True
        try:
            yield
        finally:
            self._unwatched = False

    def happen(self, point: Point) -> None:
        """What the point does, faults aside."""
        if point.kind == "delete":
            gone = self.files.pop(point.file, None)
            if gone is not None and gone.durable is not None:
                self.deleted[point.file] = bytes(gone.durable)
            if point.at:
                self.deleted.clear()
            return
        self.create(point.file)
        file = self.files[point.file]
        if point.kind == "sync":
            # Not a copy of `current`: what an earlier, failed sync forgot stays undurable.
            durable = bytearray() if file.durable is None else file.durable
            for written in file.unsynced:
                _apply(durable, written)
            file.durable = durable
            file.unsynced.clear()
            self.deleted.clear()
            return
        _apply(file.current, point)
        file.unsynced.append(point)

    def create(self, name: str) -> None:
        if name not in self.files:
            self.files[name] = Blocks()

    def forget_unsynced(self, name: str, rng: random.Random) -> None:
        """A sync failed, and the system now takes the pages for clean: no later sync will write them."""
        file = self.files[name]
        if file.durable is not None:
            file.durable = bytearray(_torn(bytes(file.durable), file.unsynced, rng))
        file.unsynced.clear()

    # what is found after the end

    def kept(self) -> Image:
        """The process died, the machine did not: everything written is there."""
        return {name: bytes(file.current) for name, file in self.files.items()}

    def cut(self) -> Image:
        """Power cut: everything that was not synced is lost, deletions included."""
        image = {n: bytes(file.durable) for n, file in self.files.items() if file.durable is not None}
        return {**self.deleted, **image}

    def torn(self, rng: random.Random, last: Point | None = None) -> Image:
        """Power cut: any sectors of what was not synced may have reached the disk, in any order.

        `last` is the write during which the power went.
        """
        image: Image = {}
        for name, file in self.files.items():
            points = list(file.unsynced)
            if last is not None and last.file == name and last.kind in ("write", "truncate"):
                points.append(last)
            if file.durable is None and rng.random() < 0.5:
                continue
            image[name] = _torn(bytes(file.durable or b""), points, rng)
        for name, content in self.deleted.items():
            if name not in image and rng.random() < 0.5:
                image[name] = content
        return image


def _torn(durable: bytes, points: list[Point], rng: random.Random) -> bytes:
    content = bytearray(durable)
    likely = rng.choice((0.1, 0.5, 0.9))
    for point in points:
        if point.data is None:
            if rng.random() < likely:
                _apply(content, point)
            continue
        start, end = point.at, point.at + len(point.data)
        while start < end:
            stop = min(end, (start // SECTOR + 1) * SECTOR)
            if rng.random() < likely:
                _apply(
                    content, Point("write", point.file, start, point.data[start - point.at : stop - point.at])
                )
            start = stop
    return bytes(content)
