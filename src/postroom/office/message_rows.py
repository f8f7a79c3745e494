"""Messages of the office as its clients know them: numbered rows, and what was said to and by agents."""

from typing import Any, Protocol

import msgspec

from postroom.kernel.model import Message
from postroom.office import queues
from postroom.office.events.derive import client_id, said
from postroom.office.imports.imported_marks import IMPORTED
from postroom.office.lanes.batches import text_of

PAGE = 500
# Mail between agents is no part of what a person reads here.
MAIL = "office.mail"
HISTORY = "office.history"
FAILURE = "office.failure"


class NumberedMessage(msgspec.Struct, frozen=True):
    """A message with the number its clients know it by."""

    number: int
    message: Message


class NumberedRoom(Protocol):
    async def numbered(self, **wanted: Any) -> list[tuple[int, Message]]: ...


async def by_number(room: NumberedRoom, number: int, **wanted: Any) -> Message | None:
    """The message with this number, if it fits the rest."""
    found = await room.numbered(after=number - 1, limit=1, scope=queues.SCOPE, deliveries=True, **wanted)
    return found[0][1] if found and found[0][0] == number else None


async def newest(room: NumberedRoom, limit: int, **wanted: Any) -> list[NumberedMessage]:
    found = await room.numbered(limit=limit, scope=queues.SCOPE, newest_first=True, **wanted)
    return [NumberedMessage(number, message) for number, message in found]


def millis(moment: int) -> int:
    return moment // 1000


def message_id_of(message: Message) -> str:
    """The id a client knows a message by. An answer has that of the message it answers."""
    if message.from_agent is None or message.hop != 1:
        answers = queues.is_outbox(message.queue) and message.causation_id
        return message.causation_id if answers and message.causation_id else client_id(message)
    talk, channel = message.correlation_id or "", f"{message.channel}:"
    return talk.removeprefix(channel) if message.channel and talk.startswith(channel) else message.id


def response_row(each: NumberedMessage) -> dict[str, Any]:
    """An answer on its way to a person."""
    message = each.message
    body = message.body if isinstance(message.body, dict) else {}
    row: dict[str, Any] = {
        "id": each.number,
        "channel": message.channel,
        "sender": message.sender,
        "senderId": message.sender_id,
        "message": text_of(message),
        "originalMessage": body.get("original", ""),
        "messageId": message_id_of(message),
        "agent": message.agent,
    }
    if message.files:
        row["files"] = message.files
    if also := answered_with(message):
        row["messageIds"] = [row["messageId"], *also]
    return row


def answered_with(message: Message) -> list[str]:
    """The ids, as clients know them, of what else an answer is an answer to: messages of the same person
    that were read in the same turn."""
    together = message.body.get("together", ()) if isinstance(message.body, dict) else ()
    return [talk.removeprefix(f"{message.channel}:") for talk in together]


async def history(room: NumberedRoom, agent: str | None, limit: int, since: int) -> list[dict[str, Any]]:
    """What was said to and by an agent, the newest first. `since` is the number of a row: only what came
    after it."""
    rows: list[dict[str, Any]] = []
    before: int | None = None
    wanted: dict[str, Any] = {"agent": agent} if agent else {}
    while len(rows) < limit:
        page = await room.numbered(scope=queues.SCOPE, newest_first=True, after=before, limit=PAGE, **wanted)
        for number, message in page:
            if number <= since:
                return rows
            if (row := _history_row(number, message)) is not None and len(rows) < limit:
                rows.append(row)
        if len(page) < PAGE:
            break
        before = page[-1][0]
    return rows


def _history_row(number: int, message: Message) -> dict[str, Any] | None:
    if message.message_type == HISTORY:
        return _imported_row(number, message)
    answered = queues.is_outbox(message.queue)
    if not answered and message.message_type != MAIL:
        return None
    agent = message.agent or message.from_agent or ""
    words = _whole_text(message).removesuffix(f"\n\n- [{agent}]") if answered else said(message)
    return {
        "id": number,
        "agent_id": agent,
        "role": "assistant" if answered else "user",
        "channel": message.channel,
        "sender": agent if answered else message.sender,
        "message_id": message_id_of(message),
        "content": words,
        "created_at": written_at(message),
    }


def written_at(message: Message) -> int:
    """In milliseconds; of what came from another office, as it was there."""
    return _origin(message).get("created_at") or millis(message.created_at)


def attempts_before(message: Message) -> int:
    """How often it was tried in the office it came from."""
    return _origin(message).get("attempts") or 0


def _origin(message: Message) -> dict[str, int]:
    found = (message.metadata or {}).get(IMPORTED) if message.source_type == IMPORTED else None
    return found if isinstance(found, dict) else {}


def _whole_text(message: Message) -> str:
    """Of an answer that was sent as a file too, all of it."""
    whole = message.body.get("whole") if isinstance(message.body, dict) else None
    return whole if isinstance(whole, str) else text_of(message)


def _imported_row(number: int, message: Message) -> dict[str, Any]:
    """What was said before, in the office this one took over."""
    return {
        "id": number,
        "agent_id": message.agent or "",
        "role": message.body["role"],
        "channel": message.channel,
        "sender": message.sender,
        "message_id": message_id_of(message),
        "content": text_of(message),
        "created_at": message.body["created_at"],
    }
