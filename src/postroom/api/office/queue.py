"""The state of the mail: counters, what is being worked on, and dead letters."""

from typing import Any

from fastapi import APIRouter

from postroom.api.dependencies import Dependencies
from postroom.api.office import message_rows
from postroom.api.openapi import AnswerModel, Number, Ok, answers
from postroom.api.responses import OK, Json
from postroom.errors import NotFound
from postroom.kernel.model import DEAD_LETTER, Message
from postroom.kernel.states import State
from postroom.office import queues
from postroom.office.lanes.batches import text_of

MOST = 500
TERMINATED = "Manually terminated by user"


class Counters(AnswerModel):
    incoming: int
    queued: int
    processing: int
    completed: int
    dead: int
    outgoing: int
    activeConversations: int  # noqa: N815


class DeadNotFound(NotFound):
    """dead message not found"""


class ProcessingNotFound(NotFound):
    """processing message not found"""


def routes(front: Dependencies) -> APIRouter:
    api = APIRouter(tags=["queue"])
    room = front.room

    @api.get(
        "/api/queue/status",
        responses=answers(
            Counters,
            example={
                "incoming": 2,
                "queued": 0,
                "processing": 1,
                "completed": 40,
                "dead": 0,
                "outgoing": 0,
                "activeConversations": 3,
            },
        ),
    )
    async def status() -> Json:
        """How much mail is where."""
        counts = await room.scope_counts(queues.SCOPE)
        mail = [
            found
            for slug, found in counts.items()
            if slug.startswith((message_rows.INBOX, message_rows.ROOM))
        ]
        out = [found for slug, found in counts.items() if slug.startswith(message_rows.OUTBOX)]
        inboxes = [found for slug, found in counts.items() if slug.startswith(message_rows.INBOX)]
        working = sum(1 for found in inboxes if found.claimed)
        claimed = sum(found.claimed for found in inboxes)
        return Json(
            {
                "incoming": sum(found.waiting for found in inboxes),
                "queued": claimed - working,
                "processing": working,
                "completed": sum(found.completed for found in mail),
                "dead": counts[DEAD_LETTER].dead,
                "outgoing": sum(found.open for found in out),
                "activeConversations": claimed,
            }
        )

    @api.get("/api/queue/agents", responses=answers(list[AnswerModel]))
    async def agents() -> Json:
        """Open mail by agent; agents without any are left out."""
        shown: list[dict[str, Any]] = []
        for slug, found in (await room.scope_counts(queues.SCOPE)).items():
            if slug.startswith(message_rows.INBOX) and found.open:
                working = 1 if found.claimed else 0
                shown.append(
                    {
                        "agent": slug.removeprefix(message_rows.INBOX),
                        "pending": found.waiting,
                        "queued": found.claimed - working,
                        "processing": working,
                    }
                )
        return Json(shown)

    @api.get("/api/queue/dead", responses=answers(list[AnswerModel]))
    async def dead() -> Json:
        """Dead letters, the newest first, with the reason."""
        found = await message_rows.newest(room, MOST, state=State.DEAD)
        return Json([_dead(number, message) for number, message in found])

    async def dead_letter(number: int) -> Message:
        message = await message_rows.by_number(room, number, state=State.DEAD)
        if message is None:
            raise DeadNotFound
        return message

    @api.post("/api/queue/dead/{id}/retry", responses=answers(Ok, 404, 409))
    async def retry(id: Number) -> Json:  # noqa: A002
        """Send a dead letter back to where it came from, with a clean slate of attempts."""
        await room.replay((await dead_letter(id)).id)
        return Json(OK)

    @api.delete("/api/queue/dead/{id}", responses=answers(Ok, 404, 409))
    async def discard(id: Number) -> Json:  # noqa: A002
        """Give a dead letter up for good."""
        await room.discard((await dead_letter(id)).id)
        return Json(OK)

    @api.get("/api/queue/processing", responses=answers(list[AnswerModel]))
    async def processing() -> Json:
        """What agents work on, and what waits in their hands."""
        now = front.clock.now()
        found = await room.numbered(scope=queues.SCOPE, state=State.CLAIMED, deliveries=True, limit=MOST)
        shown: list[dict[str, Any]] = []
        busy: set[str] = set()
        for number, message in found:
            if message.queue.startswith(message_rows.OUTBOX):
                continue
            agent = message.subscription or message.agent or "default"
            status = "queued" if agent in busy else "processing"
            busy.add(agent)
            started = message.claimed_at or message.updated_at
            shown.append(
                {
                    "id": number,
                    "messageId": message_rows.message_id_of(message),
                    "channel": message.channel,
                    "sender": message.sender,
                    "message": text_of(message),
                    "agent": agent,
                    "status": status,
                    "processAlive": status == "processing",
                    "startedAt": message_rows.ms(started),
                    "duration": message_rows.ms(max(0, now - started)),
                }
            )
        return Json(shown)

    @api.post("/api/queue/processing/{id}/kill", responses=answers(Ok, 404, 409))
    async def kill(id: Number) -> Json:  # noqa: A002
        """End a message that is being worked on, for good; its turn stops at once."""
        message = await message_rows.by_number(room, id, state=State.CLAIMED)
        if message is None or message.queue.startswith(message_rows.OUTBOX):
            raise ProcessingNotFound
        await front.staff.office.cancel(message.id, TERMINATED)
        agent = message.subscription or message.agent or "default"
        return Json({"ok": True, "agent": agent, "processKilled": True})

    return api


def _dead(number: int, message: Message) -> dict[str, Any]:
    return {
        "id": number,
        "data": {
            "channel": message.channel,
            "sender": message.sender,
            "senderId": message.sender_id,
            "message": text_of(message),
            "messageId": message_rows.message_id_of(message),
            "agent": message.agent,
        },
        "failedReason": message.failure_reason,
        "attemptsMade": message.attempts,
        "timestamp": message_rows.ms(message.created_at),
    }
