"""What goes out: answers that wait for their channel, and messages nobody asked for."""

import asyncio
from collections import defaultdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from postroom.api.dependencies import Dependencies
from postroom.api.error_responses import needs, too_large
from postroom.api.office import message_rows
from postroom.api.office.messages import Accepted, short_id
from postroom.api.openapi import AnswerModel, Error, Limit, Number, ObjectBody, Ok, Said, Word, answers
from postroom.api.responses import OK, Json
from postroom.errors import PostroomError
from postroom.kernel import commands as c
from postroom.kernel.model import Message, NewMessage
from postroom.kernel.states import OPEN, State
from postroom.office import queues
from postroom.runtime import Room

MOST_PENDING = 1000


class Outgoing(ObjectBody):
    channel: Word
    sender: Word
    message: Said
    senderId: str | None = Field(default=None, max_length=200)  # noqa: N815
    agent: str | None = Field(default=None, max_length=200)
    files: list[str] | None = Field(default=None, max_length=100)


class Response(AnswerModel):
    id: int
    channel: str
    sender: str
    senderId: str | None  # noqa: N815
    message: str
    originalMessage: str  # noqa: N815
    messageId: str  # noqa: N815
    agent: str | None
    timestamp: int | None = None
    files: list[str] | None = None


class ChannelMissing(PostroomError):
    """channel query param required"""

    code = "VALIDATION_ERROR"
    http_status = 400


def routes(front: Dependencies) -> APIRouter:
    api = APIRouter(tags=["responses"])
    locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @api.get("/api/responses", responses=answers(list[Response]))
    async def list_responses(limit: Limit = 20) -> Json:
        """The newest answers of all channels, delivered or not."""
        found: list[tuple[int, Message]] = []
        for slug in await front.room.scope_counts(queues.SCOPE):
            if slug.startswith(message_rows.OUTBOX):
                found += await message_rows.newest(front.room, limit, queue=f"{queues.SCOPE}/{slug}")
        found.sort(key=lambda pair: pair[0], reverse=True)
        shown = [
            {**message_rows.response(number, message), "timestamp": message_rows.ms(message.created_at)}
            for number, message in found[:limit]
        ]
        return Json(shown)

    @api.get("/api/responses/pending", responses=answers(list[Response], 400))
    async def list_pending(channel: Annotated[str | None, Query(max_length=200)] = None) -> Json:
        """Undelivered answers of one channel, oldest first. Acknowledge each when it is delivered."""
        if not channel:
            raise ChannelMissing
        if f"{message_rows.OUTBOX}{channel}" not in await front.room.scope_counts(queues.SCOPE):
            return Json([])
        found = await front.room.numbered(queue=queues.outbox(channel), state=list(OPEN), limit=MOST_PENDING)
        return Json([_pending(number, message) for number, message in found])

    @api.post(
        "/api/responses",
        responses={**answers(Accepted, 400), 404: {"model": Error}},
        openapi_extra=needs("channel, sender, and message are required", "channel", "sender", "message"),
    )
    async def post_response(said: Outgoing) -> Json:
        """Send a person something nobody asked for."""
        too_large(said.message, front.staff.settings.limits.message_bytes)
        message_id = short_id("proactive")
        message = NewMessage(
            body={"text": said.message, "original": ""},
            message_type="office.proactive",
            channel=said.channel,
            sender=said.sender,
            sender_id=said.senderId,
            agent=said.agent,
            files=said.files or None,
            correlation_id=f"{said.channel}:{message_id}",
            source_type="agent" if said.agent else "user",
            source_id=said.agent or said.sender,
        )
        outbox = queues.outbox(said.channel)
        actor = front.room.actor
        commands = (
            queues.open_outbox(said.channel),
            c.Publish(queue=outbox, messages=[message], actor=actor),
        )
        await front.room.run(c.Unit(commands=commands, actor=actor))
        return Json({"ok": True, "messageId": message_id})

    @api.post("/api/responses/{id}/ack", responses=answers(Ok))
    async def acknowledge(id: Number) -> Json:  # noqa: A002
        """Mark an answer as delivered. One that is not known, or was acknowledged before, is no error."""
        message = await message_rows.by_number(front.room, id)
        if message is not None and message.queue.startswith(message_rows.OUTBOX):
            async with locks[message.path]:
                await _deliver(front.room, message)
        return Json(OK)

    return api


def _pending(number: int, message: Message) -> dict[str, Any]:
    shown = message_rows.response(number, message)
    if message.metadata:
        shown["metadata"] = message.metadata
    return shown


async def _deliver(room: Room, message: Message) -> None:
    """Only who holds a message may complete it, and mail is claimed in order, so those before it are given
    back at once."""
    if message.state is State.DELAYED:
        return
    waiting = [each.id for each in await room.peek(message.path, 1000)]
    if message.id not in waiting:
        return
    claimed = await room.claim(message.path, limit=waiting.index(message.id) + 1, worker="api")
    async with room.unit() as unit:
        for each in claimed:
            if each.id == message.id:
                unit.complete(each, {"delivered": "acknowledged"})
            else:
                unit.release(each)
