"""What a ledger event points to: messages, records, and who the agents are."""

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

from postroom.errors import NotFound
from postroom.kernel.ledger import Event
from postroom.kernel.model import Message
from postroom.office import queues
from postroom.office.intake.routing import OfficeDirectory
from postroom.office.ports import RoomPort, conversation

REMEMBERED = 256


class Lookup(Protocol):
    @property
    def directory(self) -> OfficeDirectory: ...

    async def message(self, message_id: str | None, *, fresh: bool = False) -> Message | None:
        """A message; `fresh` where what became of it matters, and not only what it says."""
        ...

    async def data(self, event: Event) -> dict[str, Any]:
        """What the record of an event says."""
        ...

    async def conversation(self, correlation_id: str | None) -> list[Message]: ...

    async def same_time(self, event: Event) -> list[Event]:
        """What the ledger has after an event with the same time: committed together with it."""
        ...


class RoomLookup:
    def __init__(self, room: RoomPort, directory: Callable[[], OfficeDirectory]) -> None:
        self._room = room
        self._directory = directory
        self._messages: OrderedDict[str, Message] = OrderedDict()

    @property
    def directory(self) -> OfficeDirectory:
        return self._directory()

    async def message(self, message_id: str | None, *, fresh: bool = False) -> Message | None:
        """None also for what was pruned: then there is nothing left to tell of it."""
        if message_id is None:
            return None
        known = None if fresh else self._messages.get(message_id)
        if known is None:
            try:
                known = await self._room.get(message_id)
            except NotFound:
                return None
            self._messages[message_id] = known
        self._messages.move_to_end(message_id)
        if len(self._messages) > REMEMBERED:
            self._messages.popitem(last=False)
        return known

    async def data(self, event: Event) -> dict[str, Any]:
        number = event.details.get("record")
        record = await self._room.record_numbered(number) if isinstance(number, int) else None
        return record.data if record else {}

    async def conversation(self, correlation_id: str | None) -> list[Message]:
        if correlation_id is None:
            return []
        return await conversation(self._room, correlation_id, scope=queues.SCOPE)

    async def same_time(self, event: Event) -> list[Event]:
        found: list[Event] = []
        async with contextlib.aclosing(self._room.events(event.seq)) as events:
            async for later in events:
                if later.time != event.time:
                    break
                found.append(later)
        return found
