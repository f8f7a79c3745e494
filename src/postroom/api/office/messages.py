"""Messages come in over HTTP. When the answer is sent, the message is safe."""

from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Body as From
from pydantic import Field, ValidationError

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.error_responses import needs
from postroom.api.openapi import AnswerModel, ObjectBody, Said, Word, answers
from postroom.api.responses import Json
from postroom.services.callers import Caller
from postroom.services.conversations import ConversationService, Draft, DuplicateMessage
from postroom.services.office_documents import sent_document

PATH = "/api/message"


class MessageBody(ObjectBody):
    message: Annotated[Said, Field(description="The text; `@agent` or `@team` in front routes it")]
    agent: str | None = Field(default=None, max_length=200, description="Instead of an @ in the text")
    sender: Word | None = None
    senderId: str | None = Field(default=None, max_length=200)  # noqa: N815 - the clients' name
    channel: Word | None = None
    messageId: Word | None = Field(  # noqa: N815
        default=None, description="The platform's own id; the same one is never taken twice"
    )
    files: list[str] | None = Field(
        default=None,
        max_length=100,
        description="Paths of files in the room's folder `files/`",
    )


class Accepted(AnswerModel):
    ok: bool = True
    messageId: str  # noqa: N815
    notice: str | None = Field(default=None, description="What there is to say to it at once, if anything")
    queued: bool | None = Field(default=None, description="With a notice: whether an agent gets it too")


EXAMPLES: dict[str, Any] = {
    "to an agent": {
        "value": {"message": "@coder please look at the build", "sender": "Ann", "channel": "web"}
    },
    "with an id": {
        "value": {"message": "hello", "sender": "Ann", "channel": "telegram", "messageId": "telegram_7"}
    },
}


def read(body: bytes) -> MessageBody | None:
    """None when something is wrong with it."""
    try:
        return MessageBody.model_validate_json(body)
    except ValidationError:
        return None


async def accept(conversations: ConversationService, caller: Caller, body: MessageBody) -> Json:
    draft = Draft(
        text=body.message,
        channel=body.channel or "api",
        sender=body.sender or "API",
        sender_id=body.senderId,
        agent=body.agent,
        message_id=body.messageId,
        files=tuple(body.files or ()),
    )
    try:
        sent = await conversations.send(caller, draft)
    except DuplicateMessage as error:
        told = {"error": "duplicate messageId", "code": error.code, "messageId": error.data["message_id"]}
        return Json(told, status_code=409)
    return Json(sent_document(sent))


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["messages"])

    @api.post(
        PATH,
        responses=answers(Accepted, 400, 409, example={"ok": True, "messageId": "api_k3v9x2ab"}),
        openapi_extra=needs("message is required", "message"),
    )
    async def post_message(
        caller: Asked, body: Annotated[MessageBody, From(openapi_examples=EXAMPLES)]
    ) -> Json:
        """Put a message on the queue of the agent it is for."""
        return await accept(deps.services.conversations, caller, body)

    return api
