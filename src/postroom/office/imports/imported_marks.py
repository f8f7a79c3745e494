"""What has come over before: a mark is made together with the thing, so that neither is there alone."""

from collections import Counter
from typing import Any

from postroom.errors import DocumentChanged
from postroom.kernel import commands as c
from postroom.office.ports import RoomPort

IMPORTED = "import"


class ImportedMarks:
    def __init__(self, room: RoomPort) -> None:
        self._room = room
        self.moved: Counter[str] = Counter()

    async def of(self, mark: str) -> dict[str, Any] | None:
        found = await self._room.document(IMPORTED, mark)
        return found.data if found is not None else None

    async def once(self, what: str, mark: str, data: dict[str, Any], *commands: c.Command) -> bool:
        """All of it, unless the mark is there already."""
        note = c.PutDocument(kind=IMPORTED, key=mark, data=data, expect=0, history=False, actor=IMPORTED)
        try:
            await self._room.run(c.Unit(commands=(note, *commands), actor=IMPORTED))
        except DocumentChanged as error:
            if error.data.get("kind") != IMPORTED:
                raise
            return False
        self.moved[what] += 1
        return True

    async def advance(self, mark: str, number: int) -> c.Command:
        """What says, together with the rows, how far a table has been read."""
        found = await self._room.document(IMPORTED, mark)
        version = found.version if found is not None else 0
        data = {"upto": number}
        return c.PutDocument(
            kind=IMPORTED, key=mark, data=data, expect=version, history=False, actor=IMPORTED
        )
