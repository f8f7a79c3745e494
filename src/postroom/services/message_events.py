"""The ledger's events of one message. The ledger has no index by message, but its times only rise."""

from collections.abc import Iterator

from postroom.kernel.ledger import Event
from postroom.kernel.model import Message
from postroom.kernel.reader import Reader
from postroom.kernel.rows import Row

PAGE = 500


def events_of(reader: Reader, message: Row | Message) -> list[Event]:
    """All that are there; events older than the ledger's retention are gone."""
    found = []
    for event in _events(reader, last_before(reader, message.created_at)):
        if event.time > message.updated_at:
            break
        if event.message_id == message.id:
            found.append(event)
    return found


def last_before(reader: Reader, time: int) -> int:
    """The number of the last event before a time."""
    low, high = reader.anchor().seq + 1, reader.head().seq + 1
    while low < high:
        middle = (low + high) // 2
        event = next(iter(reader.events(middle - 1, 1)), None)
        if event is not None and event.time < time:
            low = middle + 1
        else:
            high = middle
    return low - 1


def _events(reader: Reader, after: int) -> Iterator[Event]:
    while page := reader.events(after, PAGE):
        yield from page
        after = page[-1].seq
