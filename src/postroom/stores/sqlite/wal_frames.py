"""The pages that commits have written, read from SQLite's log while others write it.

The log's index (the -shm file) says how far it is valid and counts commits, so that nothing half written is
taken, and a log that was begun anew in between is noticed by its count. Never in the process that owns the
store: whoever closes a file of SQLite drops all locks that his process has on it.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

_INDEX = struct.Struct("=IIIBBHII8s8s8s")
_FRAME = struct.Struct(">II8s8s")
LOG_HEADER = 32


class LogPosition(msgspec.Struct, frozen=True):
    """How far a log goes: its generation, its valid frames, and the commits there ever were."""

    salt: bytes
    frames: int
    commits: int
    page_size: int


class PageWrite(msgspec.Struct, frozen=True):
    """A page as a commit has left it. `pages` is how many the store has then; 0 when the commit goes on."""

    number: int
    pages: int
    data: bytes


class LogUnsteady(Exception):
    """The index changes all the while, or is not there: ask again."""


class LogIndex:
    """Open for as long as a connection of this process is, and closed after it."""

    def __init__(self, store: Path) -> None:
        self._path = Path(f"{store}-shm")
        self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)

    @property
    def is_current(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        except FileNotFoundError:
            return False

    def read(self) -> LogPosition:
        copies = os.pread(self._file, 2 * _INDEX.size, 0)
        first, second = copies[: _INDEX.size], copies[_INDEX.size :]
        if len(copies) < 2 * _INDEX.size or first != second:
            raise LogUnsteady
        _, _, commits, is_ready, _, size, frames, _, _, salt, _ = _INDEX.unpack(first)
        if not is_ready:
            raise LogUnsteady
        return LogPosition(salt, frames, commits, 65536 if size == 1 else size)

    def close(self) -> None:
        os.close(self._file)


def read_frames(store: Path, after: int, until: LogPosition) -> list[PageWrite]:
    """The frames behind a number; the reader's own transaction keeps them from being overwritten."""
    if until.frames <= after:
        return []
    with Path(f"{store}-wal").open("rb") as log:
        found = list(_frames(log, after, until))
    if len(found) != until.frames - after:
        raise LogUnsteady
    return found


def _frames(log: BinaryIO, after: int, until: LogPosition) -> Iterator[PageWrite]:
    size = _FRAME.size + until.page_size
    log.seek(LOG_HEADER + after * size)
    for _ in range(until.frames - after):
        frame = log.read(size)
        if len(frame) < size:
            return
        number, pages, salt, _ = _FRAME.unpack_from(frame)
        if salt != until.salt:
            return
        yield PageWrite(number, pages, frame[_FRAME.size :])


def apply_pages(file: BinaryIO, writes: list[PageWrite], page_size: int) -> None:
    """Write whole commits into a copy of the store that nobody has open."""
    for write in writes:
        file.seek((write.number - 1) * page_size)
        file.write(write.data)
        if write.pages:
            file.truncate(write.pages * page_size)
