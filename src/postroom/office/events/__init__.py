"""What clients are told of what happens, in the names that two generations of them know.

All is derived from the ledger and what it points to; nothing is stored for it, and it can be told again.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from postroom.kernel.ledger import Event
from postroom.office.events.derive import client_id, contract_events
from postroom.office.events.lookup import Lookup, RoomLookup
from postroom.office.events.model import NEW, OLD, ContractEvent
from postroom.office.intake.routing import OfficeDirectory
from postroom.office.ports import RoomPort

__all__ = [
    "NEW",
    "OLD",
    "ContractEvent",
    "Lookup",
    "RoomLookup",
    "client_id",
    "contract_events",
    "translator",
]


def translator(
    room: RoomPort, directory: Callable[[], OfficeDirectory]
) -> Callable[[Event], Awaitable[Sequence[tuple[str, dict[str, Any]]]]]:
    """For the stream: a ledger event as names and data."""
    lookup = RoomLookup(room, directory)

    async def translate(event: Event) -> Sequence[tuple[str, dict[str, Any]]]:
        return [(told.name, told.data) for told in await contract_events(event, lookup)]

    return translate
