"""Small records by name in a file of the home, which all API processes of the home read and change.

A file that cannot be read holds nothing; without a file, what is known is this process's own.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from postroom.settings import durable

T = TypeVar("T")
R = TypeVar("R")

PATIENCE_S = 10.0


class Records(Protocol[T]):
    """Where records are kept that several processes read and change."""

    async def read(self) -> dict[str, T]:
        """As it is now, whoever wrote it last."""
        ...

    async def change(self, edit: Callable[[dict[str, T]], R]) -> R:
        """What `edit` changes in the mapping is written, one process at a time; it may be asked again."""
        ...


class RecordFile(Generic[T]):
    def __init__(self, path: Path | None, kind: type[T]) -> None:
        self._path = path
        self._decoder = msgspec.json.Decoder(dict[str, kind])
        self._known: dict[str, T] = {}
        self._signature: tuple[int, int, int] | None = None

    async def read(self) -> dict[str, T]:
        if self._path is not None:
            try:
                found = self._path.stat()
                # Each write makes a new file, so no two states look alike.
                signature = found.st_ino, found.st_mtime_ns, found.st_size
                if signature != self._signature:
                    self._known = self._decoder.decode(self._path.read_bytes())
                    self._signature = signature
            except (OSError, msgspec.DecodeError):
                self._known, self._signature = {}, None
        return self._known

    async def change(self, edit: Callable[[dict[str, T]], R]) -> R:
        if self._path is None:
            return edit(self._known)
        with durable.locked(self._path, PATIENCE_S):
            known = await self.read()
            result = edit(known)
            durable.replace(self._path, msgspec.json.encode(known))
            return result
