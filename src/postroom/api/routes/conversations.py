"""What became of a message: whether work on it goes on, and what was answered so far."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from postroom.api import mailbags
from postroom.api.answers import Json
from postroom.api.front import Front
from postroom.api.schema import Answer, Id, answers
from postroom.errors import MessageNotFound
from postroom.kernel.states import OPEN
from postroom.office import places

MOST = 1000


def routes(front: Front) -> APIRouter:
    api = APIRouter(tags=["messages"])

    @api.get("/api/message/{id}", responses=answers(Answer, 404))
    async def look(id: Id, channel: Annotated[str, Query(min_length=1, max_length=200)] = "api") -> Json:  # noqa: A002
        """The conversation that a message began: `open` while any agent has mail of it."""
        found = await front.room.numbered(
            scope=places.SCOPE, correlation_id=f"{channel}:{id}", limit=MOST, deliveries=True
        )
        if not found:
            raise MessageNotFound(message_id=id)
        replies: list[dict[str, Any]] = []
        working: list[str] = []
        dead: list[str] = []
        for number, message in found:
            if places.is_outbox(message.queue):
                replies.append(mailbags.response(number, message))
            elif message.state in OPEN and message.subscription is None:
                working.append(message.agent or "")
            elif message.state == "dead":
                dead.append(message.failure_reason or "")
        return Json(
            {"messageId": id, "open": bool(working), "agents": working, "replies": replies, "failures": dead}
        )

    return api
