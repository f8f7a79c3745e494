"""Mail comes in over HTTP. When the answer is sent, the message is safe."""

import random
import secrets
import string
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Body as From
from pydantic import Field, ValidationError

from postroom.api.dependencies import Dependencies
from postroom.api.error_responses import needs, too_large
from postroom.api.openapi import AnswerModel, ObjectBody, Said, Word, answers
from postroom.api.responses import Json
from postroom.errors import IdempotencyConflict
from postroom.office.intake.intake import Incoming

ALPHABET = string.digits + string.ascii_lowercase
PATH = "/api/message"
# Nobody has to guess these ids in vain, and asking the system each time lets other threads go first.
_CHANCE = random.Random(secrets.randbits(256))


def short_id(prefix: str) -> str:
    """`api_` and the like with eight characters of chance, as clients know them."""
    chance = _CHANCE.getrandbits(64)
    return f"{prefix}_{''.join(ALPHABET[(chance >> shift) % 36] for shift in range(0, 64, 8))}"


class MessageBody(ObjectBody):
    message: Annotated[Said, Field(description="The text; `@agent` or `@team` in front routes it")]
    agent: str | None = Field(default=None, max_length=200, description="Instead of an @ in the text")
    sender: Word | None = None
    senderId: str | None = Field(default=None, max_length=200)  # noqa: N815 - the clients' name
    channel: Word | None = None
    messageId: Word | None = Field(  # noqa: N815
        default=None, description="The platform's own id; the same one is never taken twice"
    )


class Accepted(AnswerModel):
    ok: bool = True
    messageId: str  # noqa: N815
    notice: str | None = Field(default=None, description="What the house says to it at once, if anything")
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


async def accept(front: Dependencies, mail: MessageBody) -> Json:
    too_large(mail.message, front.staff.settings.limits.message_bytes)
    message_id = mail.messageId or short_id("api")
    incoming = Incoming(
        channel=mail.channel or "api",
        sender=mail.sender or "API",
        sender_id=mail.senderId,
        text=mail.message,
        platform_id=message_id,
        fresh=mail.messageId is None,
        agent=mail.agent,
    )
    try:
        taken = await front.staff.office.take_in(incoming)
    except IdempotencyConflict:
        taken = None
    if taken is None or taken.repeated:
        body = {"error": "duplicate messageId", "code": "IDEMPOTENCY_CONFLICT", "messageId": message_id}
        return Json(body, status_code=409)
    told = {} if taken.notice is None else {"notice": taken.notice, "queued": bool(taken.receipts)}
    return Json({"ok": True, "messageId": message_id, **told})


def routes(front: Dependencies) -> APIRouter:
    api = APIRouter(tags=["messages"])

    @api.post(
        PATH,
        responses=answers(Accepted, 400, 409, example={"ok": True, "messageId": "api_k3v9x2ab"}),
        openapi_extra=needs("message is required", "message"),
    )
    async def post_message(mail: Annotated[MessageBody, From(openapi_examples=EXAMPLES)]) -> Json:
        """Put a message on the queue of the agent it is for."""
        return await accept(front, mail)

    return api
