"""The ledger's events of one message. The ledger has no index by message, but can be searched by time."""

from postroom.kernel.ledger import Event
from postroom.kernel.model import Message
from postroom.kernel.reader import Reader
from postroom.kernel.rows import Row

PAGE = 500


def events_of(reader: Reader, message: Row | Message) -> list[Event]:
    """All that are there; events older than the ledger's retention are gone."""
    first, end = reader.span(message.created_at, message.updated_at)
    found: list[Event] = []
    while first < end and (page := reader.events(first - 1, min(PAGE, end - first))):
        found += (event for event in page if event.message_id == message.id)
        first = page[-1].seq + 1
    return found
