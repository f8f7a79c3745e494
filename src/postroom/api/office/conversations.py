"""What became of a message: whether work on it goes on, and what was answered so far."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from postroom.api.dependencies import Dependencies
from postroom.api.office import message_rows
from postroom.api.openapi import AnswerModel, answers
from postroom.api.responses import Json
from postroom.errors import MessageNotFound, NotFound
from postroom.kernel.model import Message
from postroom.kernel.states import OPEN, State
from postroom.office import queues
from postroom.office.guards import budgets as accounts
from postroom.runtime import Room

MOST = 1000
FAILURE = "office.failure"
BUDGETS = ("day/", "agent/", "team/")
# Clients make these ids themselves, so there may be a slash in one.
ClientsId = Annotated[str, Path(min_length=1, max_length=200)]


def routes(front: Dependencies) -> APIRouter:
    api = APIRouter(tags=["messages"])

    @api.get("/api/message/{id:path}", responses=answers(AnswerModel, 404))
    async def look(
        id: ClientsId,  # noqa: A002
        channel: Annotated[str, Query(min_length=1, max_length=200)] = "api",
    ) -> Json:
        """The conversation that a message began: `open` while any agent has mail of it, `paused` by what it
        waits for when only a person can let it go on. A reply that says why there is none has `failed`. What
        was answered together with another message of the same person has that one's replies."""
        talks = [f"{channel}:{id}"]
        found: list[tuple[int, Message]] = []
        for talk in talks:
            part = await front.room.numbered(
                scope=queues.SCOPE, correlation_id=talk, limit=MOST, deliveries=True
            )
            found += part
            others = [await _answered_in(front.room, message) for _, message in part]
            talks += dict.fromkeys(other for other in others if other and other not in talks)
        if not found:
            raise MessageNotFound(message_id=id)
        replies: list[dict[str, Any]] = []
        working: list[Message] = []
        dead: list[str] = []
        for number, message in found:
            if queues.is_outbox(message.queue):
                failed = {"failed": True} if message.message_type == FAILURE else {}
                replies.append({**message_rows.response(number, message), **failed})
            elif message.state in OPEN and message.subscription is None:
                working.append(message)
            elif message.state == "dead":
                dead.append(message.failure_reason or "")
        return Json(
            {
                "messageId": id,
                "open": bool(working),
                "paused": await _paused(front.room, talks, working),
                "agents": [message.agent or "" for message in working],
                "replies": replies,
                "failures": dead,
            }
        )

    return api


async def _answered_in(room: Room, message: Message) -> str | None:
    """The conversation with the answer, of what rode along with another message of the same person."""
    result = message.result if isinstance(message.result, dict) else {}
    if message.subscription is not None or "with" not in result:
        return None
    try:
        first = await room.get(result["with"])
    except NotFound:
        return None  # pruned, and read long ago
    return first.correlation_id if _person(first) == _person(message) else None


def _person(message: Message) -> tuple[str | None, str | None]:
    return message.channel, message.sender_id or message.sender


async def _paused(room: Room, talks: list[str], working: list[Message]) -> str | None:
    """The guard that stopped it, `paused` when everybody is, or None when it goes on by itself."""
    mail = [message for message in working if queues.is_inbox(message.queue)]
    if not mail or any(message.state is not State.DELAYED for message in mail):
        return None
    found = await room.accounts(accounts.OFFICE, *(accounts.conversation(talk) for talk in talks))
    for account in found.values():
        if account.frozen and account.frozen != accounts.STOPPED:
            return account.frozen
    waited_for = {(message.failure_reason or "").partition(":")[0] for message in mail}
    budgets = [name for name in waited_for if name.startswith(BUDGETS)]
    used_up = budgets and any(each.frozen for each in (await room.accounts(*budgets)).values())
    return accounts.BudgetGuard.BUDGET.value if used_up else None
