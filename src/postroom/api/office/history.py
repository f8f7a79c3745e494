"""What was said to and by agents, as rows that clients know. It is read from the messages themselves."""

from typing import Any

from postroom.api.office import message_rows
from postroom.kernel.model import Message
from postroom.office import queues
from postroom.office.lanes.batches import text_of
from postroom.runtime import Room

PAGE = 500
# Mail between agents is no part of what a person reads here.
MAIL = "office.mail"
HISTORY = "office.history"


async def of_agent(room: Room, agent: str | None, limit: int, since: int) -> list[dict[str, Any]]:
    """The newest first. `since` is the number of a row: only what came after it."""
    rows: list[dict[str, Any]] = []
    before: int | None = None
    wanted: dict[str, Any] = {"agent": agent} if agent else {}
    while len(rows) < limit:
        page = await room.numbered(scope=queues.SCOPE, newest_first=True, after=before, limit=PAGE, **wanted)
        for number, message in page:
            if number <= since:
                return rows
            if (row := _row(number, message)) is not None and len(rows) < limit:
                rows.append(row)
        if len(page) < PAGE:
            break
        before = page[-1][0]
    return rows


def _row(number: int, message: Message) -> dict[str, Any] | None:
    if message.message_type == HISTORY:
        return _remembered(number, message)
    answered = queues.is_outbox(message.queue)
    if not answered and message.message_type != MAIL:
        return None
    agent = message.agent or message.from_agent or ""
    return {
        "id": number,
        "agent_id": agent,
        "role": "assistant" if answered else "user",
        "channel": message.channel,
        "sender": agent if answered else message.sender,
        "message_id": message_rows.message_id_of(message),
        "content": _words(message, agent) if answered else said(message),
        "created_at": message_rows.ms(message.created_at),
    }


def _remembered(number: int, message: Message) -> dict[str, Any]:
    """What was said before, in the office this one took over."""
    return {
        "id": number,
        "agent_id": message.agent or "",
        "role": message.body["role"],
        "channel": message.channel,
        "sender": message.sender,
        "message_id": message_rows.message_id_of(message),
        "content": text_of(message),
        "created_at": message.body["created_at"],
    }


def said(message: Message) -> str:
    """What the person wrote, with the prefix that routed it where it is known."""
    body = message.body if isinstance(message.body, dict) else {}
    return str(body.get("said") or f"{body.get('prefix', '')}{text_of(message)}")


def _words(message: Message, agent: str) -> str:
    return text_of(message).removesuffix(f"\n\n- [{agent}]")
