"""Small records by name in one document of the store, for the API processes of all hosts."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from postroom.errors import DocumentChanged
from postroom.kernel import commands as c
from postroom.kernel.access.keys import NOBODY
from postroom.runtime import Room

T = TypeVar("T")
R = TypeVar("R")

TRIES = 50
KEY = "all"


class RecordDocument(Generic[T]):
    def __init__(self, room: Room, kind: str, record: type[T]) -> None:
        self._room = room
        self._kind = kind
        self._record = record

    async def read(self) -> dict[str, T]:
        return (await self._fetch())[1]

    async def change(self, edit: Callable[[dict[str, T]], R]) -> R:
        for left in range(TRIES, 0, -1):
            version, known = await self._fetch()
            before = msgspec.to_builtins(known)
            result = edit(known)
            if (data := msgspec.to_builtins(known)) == before:
                return result
            command = c.PutDocument(
                kind=self._kind,
                key=KEY,
                data=data,
                expect=version,
                history=False,
                tenant=NOBODY,
                actor=self._room.actor,
            )
            try:
                await self._room.run(command)
            except DocumentChanged:
                if left == 1:
                    raise
                continue
            return result
        raise AssertionError("unreachable")

    async def _fetch(self) -> tuple[int, dict[str, T]]:
        found = await self._room.look(lambda reader: reader.document(NOBODY, self._kind, KEY), quick=True)
        if found is None:
            return 0, {}
        return found.version, msgspec.convert(found.data, dict[str, self._record])
