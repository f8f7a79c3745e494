"""What goes out: answers that wait for their channel, and messages nobody asked for."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.error_responses import needs
from postroom.api.office.messages import Accepted
from postroom.api.openapi import AnswerModel, Error, Limit, Number, ObjectBody, Ok, Said, Word, answers
from postroom.api.responses import OK, Json
from postroom.errors import PostroomError
from postroom.office.message_rows import NumberedMessage, millis, response_row
from postroom.services.conversations import Outgoing


class ResponseBody(ObjectBody):
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
    messageIds: list[str] | None = Field(  # noqa: N815
        default=None, description="When several messages were answered together: all their ids"
    )
    agent: str | None
    timestamp: int | None = None
    files: list[str] | None = None


class ChannelMissing(PostroomError):
    """channel query param required"""

    code = "VALIDATION_ERROR"
    http_status = 400


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["responses"])
    conversations = deps.services.conversations

    @api.get("/api/responses", responses=answers(list[Response]))
    async def list_responses(caller: Asked, limit: Limit = 20) -> Json:
        """The newest answers of all channels, delivered or not."""
        found = await conversations.responses(caller, limit)
        return Json([{**response_row(each), "timestamp": millis(each.message.created_at)} for each in found])

    @api.get("/api/responses/pending", responses=answers(list[Response], 400))
    async def list_pending(
        caller: Asked, channel: Annotated[str | None, Query(max_length=200)] = None
    ) -> Json:
        """Undelivered answers of one channel, oldest first. Acknowledge each when it is delivered."""
        if not channel:
            raise ChannelMissing
        found = await conversations.pending_responses(caller, channel)
        return Json([_pending_row(each) for each in found])

    @api.post(
        "/api/responses",
        responses={**answers(Accepted, 400), 404: {"model": Error}},
        openapi_extra=needs("channel, sender, and message are required", "channel", "sender", "message"),
    )
    async def post_response(caller: Asked, body: ResponseBody) -> Json:
        """Send a person something nobody asked for."""
        said = Outgoing(
            channel=body.channel,
            sender=body.sender,
            text=body.message,
            sender_id=body.senderId,
            agent=body.agent,
            files=tuple(body.files or ()),
        )
        return Json({"ok": True, "messageId": await conversations.respond(caller, said)})

    @api.post("/api/responses/{id}/ack", responses=answers(Ok))
    async def acknowledge(caller: Asked, id: Number) -> Json:  # noqa: A002
        """Mark an answer as delivered. One that is not known, or was acknowledged before, is no error."""
        await conversations.acknowledge(caller, [id])
        return Json(OK)

    return api


def _pending_row(each: NumberedMessage) -> dict[str, Any]:
    metadata = each.message.metadata
    return {**response_row(each), **({"metadata": metadata} if metadata else {})}
