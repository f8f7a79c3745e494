"""The ledger's events of one message. The ledger has no index by message, but its times only rise."""

from postroom.kernel.ledger import Event
from postroom.kernel.model import Message
from postroom.runtime import SyncRoom


def of_message(room: SyncRoom, message: Message) -> list[Event]:
    """All that were kept; events older than the ledger's retention are gone."""
    found = []
    for event in room.events(last_before(room, message.created_at)):
        if event.time > message.updated_at:
            break
        if event.message_id == message.id:
            found.append(event)
    return found


def last_before(room: SyncRoom, time: int) -> int:
    """The number of the last event before a time."""
    first = next(room.events(0), None)
    if first is None:
        return 0
    low, high = first.seq, room.head().seq + 1
    while low < high:
        middle = (low + high) // 2
        event = next(room.events(middle - 1), None)
        if event is not None and event.time < time:
            low = middle + 1
        else:
            high = middle
    return low - 1
