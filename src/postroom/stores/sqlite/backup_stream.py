"""A store shipped as it changes: a whole copy first, then the pages of every commit, and back to any moment.

Each part names the one before it and carries its digest, so that a missing or changed part is found. The
store is only read, and never from the process that owns it.
"""

import contextlib
import hashlib
import tempfile
import time
import zlib
from pathlib import Path
from typing import Protocol

import apsw
import msgspec

from postroom.clock import Clock, iso
from postroom.errors import NotFound, StoreCorrupt
from postroom.stores.sqlite.migrate import copy_to
from postroom.stores.sqlite.wal_frames import (
    LogIndex,
    LogPosition,
    LogUnsteady,
    PageWrite,
    apply_pages,
    read_frames,
)

BASE, PAGES = "base", "pages"
STEADY_S = 60.0


class BackupTarget(Protocol):
    """Where parts are put: a folder, or a place on an object store."""

    def put(self, name: str, data: bytes) -> None:
        """Whole and durable, or not at all."""
        ...

    def names(self) -> list[str]: ...
    def get(self, name: str) -> bytes: ...
    def drop(self, name: str) -> None: ...


class NoSuchMoment(NotFound):
    """There is no backup of {moment} in {place}: the first is of {first}. Name a later moment with --at."""

    code = "NO_SUCH_MOMENT"


class PartHeader(msgspec.Struct, frozen=True):
    before: str
    """The name of the part before it; empty for a whole copy."""
    page_size: int


class ShippedPages(msgspec.Struct, frozen=True, array_like=True):
    header: PartHeader
    writes: list[PageWrite]


class PartName(msgspec.Struct, frozen=True):
    """`<microseconds>-<kind>-<digest>`: names sort by time."""

    text: str
    time: int
    kind: str
    digest: str

    @classmethod
    def read(cls, text: str) -> "PartName | None":
        parts = text.split("-")
        if len(parts) != 3 or not parts[0].isdecimal() or parts[1] not in (BASE, PAGES):
            return None
        return cls(text, int(parts[0]), parts[1], parts[2])


class BackupStream:
    """Ships one store. Between two calls of `ship` a reading transaction keeps the log where it is."""

    def __init__(self, store: Path, target: BackupTarget, clock: Clock) -> None:
        self._store, self._target, self._clock = store, target, clock
        self._db: apsw.Connection | None = None
        self._index: LogIndex | None = None
        self._at: LogPosition | None = None
        self._last, self._time = "", 0

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
        if self._index is not None:
            self._index.close()
            self._index = None
        self._at = None

    def begin(self) -> str:
        """A whole copy of the store as it is now."""
        db, at = self._look()
        self._follow(db, at)
        with tempfile.TemporaryDirectory(prefix="postroom-base-") as folder:
            copy_to(db, Path(folder) / BASE)
            data = (Path(folder) / BASE).read_bytes()
        self._last = self._put(BASE, data)
        return self._last

    def ship(self) -> int:
        """The commits since the last time: how many. After a gap, which a restart can leave, a whole copy."""
        if self._at is None:
            self.begin()
            return 0
        db, at = self._look()
        before = self._at or LogPosition(b"", 0, -1, 0)
        after = before.frames if at.salt == before.salt else 0
        try:
            writes = read_frames(self._store, after, at)
        except (LogUnsteady, OSError):
            writes = []
        commits = sum(write.pages > 0 for write in writes)
        whole = commits == at.commits - before.commits
        self._follow(db, at)
        if not whole:
            self.begin()
        elif commits:
            header = PartHeader(self._last, at.page_size)
            self._last = self._put(PAGES, msgspec.msgpack.encode(ShippedPages(header, writes)))
        return commits

    def prune(self, before: int) -> int:
        """Drop the parts that no moment after this one needs."""
        parts = _parts(self._target)
        bases = [part.time for part in parts if part.kind == BASE and part.time <= before]
        old = [part for part in parts if bases and part.time < bases[-1]]
        for part in old:
            self._target.drop(part.text)
        return len(old)

    def _look(self) -> tuple[apsw.Connection, LogPosition]:
        """A transaction that sees exactly the state at a position of the log."""
        if self._index is not None and not self._index.is_current:
            self.close()
        end = time.monotonic() + STEADY_S
        db = apsw.Connection(
            f"file:{self._store}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        db.set_busy_timeout(5000)
        try:
            while True:
                with contextlib.suppress(LogUnsteady):
                    db.execute("BEGIN")
                    db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
                    index = self._index = self._index or LogIndex(self._store)
                    db.execute("COMMIT")
                    found = index.read()
                    db.execute("BEGIN")
                    db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
                    if index.read() == found:
                        return db, found
                if db.in_transaction:
                    db.execute("ROLLBACK")
                if time.monotonic() > end:
                    raise StoreCorrupt(path=str(self._store), problem="its log cannot be followed")
                time.sleep(0.001)
        except BaseException:
            db.close()
            raise

    def _follow(self, db: apsw.Connection, at: LogPosition) -> None:
        if self._db is not None:
            self._db.close()
        self._db, self._at = db, at

    def _put(self, kind: str, data: bytes) -> str:
        self._time = max(self._time + 1, self._clock.now())
        packed = zlib.compress(data, 1)
        name = f"{self._time:020}-{kind}-{hashlib.sha256(packed).hexdigest()[:32]}"
        self._target.put(name, packed)
        return name


def restore_stream(target: BackupTarget, place: str, file: Path, at: int | None = None) -> int:
    """Rebuild the store in a new file as it was at a moment; the newest without one. Answers which it is."""
    parts = [part for part in _parts(target) if at is None or part.time <= at]
    bases = [position for position, part in enumerate(parts) if part.kind == BASE]
    if not bases:
        first = next(iter(_parts(target)), None)
        moment = "any moment" if at is None else iso(at)
        raise NoSuchMoment(moment=moment, place=place, first=iso(first.time) if first else "none")
    base, *later = parts[bases[-1] :]
    last = base.text
    with file.open("wb") as out:
        out.write(_content(target, base))
        for part in later:
            shipped = msgspec.msgpack.decode(_content(target, part), type=ShippedPages)
            if shipped.header.before != last:
                raise StoreCorrupt(path=place, problem=f"the part before {part.text} is missing")
            apply_pages(out, shipped.writes, shipped.header.page_size)
            last = part.text
    return PartName.read(last).time  # type: ignore[union-attr]


def _parts(target: BackupTarget) -> list[PartName]:
    found = (PartName.read(name) for name in target.names())
    return sorted((part for part in found if part is not None), key=lambda part: part.text)


def _content(target: BackupTarget, part: PartName) -> bytes:
    packed = target.get(part.text)
    if hashlib.sha256(packed).hexdigest()[:32] != part.digest:
        raise StoreCorrupt(path=part.text, problem="this part of the backup is not as it was written")
    return zlib.decompress(packed)
