"""Messages of the office as its clients know them: numbered rows with camel-case fields."""

from typing import Any

from postroom.kernel.model import Message
from postroom.office import queues
from postroom.office.events.derive import client_id
from postroom.office.lanes.batches import text_of
from postroom.runtime import Room

OUTBOX = queues.outbox("").removeprefix(f"{queues.SCOPE}/")
INBOX = queues.inbox("").removeprefix(f"{queues.SCOPE}/")
ROOM = queues.room_of("").removeprefix(f"{queues.SCOPE}/")


def ms(moment: int) -> int:
    return moment // 1000


def message_id_of(message: Message) -> str:
    """The id a client knows a message by. An answer has that of the message it answers."""
    if message.from_agent is None or message.hop != 1:
        answers = queues.is_outbox(message.queue) and message.causation_id
        return message.causation_id if answers and message.causation_id else client_id(message)
    talk, channel = message.correlation_id or "", f"{message.channel}:"
    return talk.removeprefix(channel) if message.channel and talk.startswith(channel) else message.id


def response(number: int, message: Message) -> dict[str, Any]:
    """An answer on its way to a person."""
    body = message.body if isinstance(message.body, dict) else {}
    shown: dict[str, Any] = {
        "id": number,
        "channel": message.channel,
        "sender": message.sender,
        "senderId": message.sender_id,
        "message": text_of(message),
        "originalMessage": body.get("original", ""),
        "messageId": message_id_of(message),
        "agent": message.agent,
    }
    if message.files:
        shown["files"] = message.files
    return shown


async def by_number(room: Room, number: int, **wanted: Any) -> Message | None:
    """The message with this number, if it fits the rest."""
    found = await room.numbered(after=number - 1, limit=1, scope=queues.SCOPE, deliveries=True, **wanted)
    return found[0][1] if found and found[0][0] == number else None


async def newest(room: Room, limit: int, **wanted: Any) -> list[tuple[int, Message]]:
    return await room.numbered(limit=limit, scope=queues.SCOPE, newest_first=True, **wanted)
