"""The state of the mail: counters, what is being worked on, and dead letters."""

from fastapi import APIRouter

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.openapi import AnswerModel, Number, Ok, answers
from postroom.api.responses import OK, Json
from postroom.services.office_documents import (
    agent_workload_document,
    counts_document,
    dead_document,
    work_document,
)

EXAMPLE = {
    "incoming": 2,
    "queued": 0,
    "processing": 1,
    "completed": 40,
    "dead": 0,
    "outgoing": 0,
    "activeConversations": 3,
}


class Counters(AnswerModel):
    incoming: int
    queued: int
    processing: int
    completed: int
    dead: int
    outgoing: int
    activeConversations: int  # noqa: N815


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["queue"])
    workload = deps.services.workload

    @api.get("/api/queue/status", responses=answers(Counters, example=EXAMPLE))
    async def status(caller: Asked) -> Json:
        """How much mail is where."""
        return Json(counts_document(await workload.counts(caller)))

    @api.get("/api/queue/agents", responses=answers(list[AnswerModel]))
    async def agents(caller: Asked) -> Json:
        """Open mail by agent; agents without any are left out."""
        return Json([agent_workload_document(each) for each in await workload.by_agent(caller)])

    @api.get("/api/queue/dead", responses=answers(list[AnswerModel]))
    async def dead(caller: Asked) -> Json:
        """Dead letters, the newest first, with the reason."""
        return Json([dead_document(each) for each in await workload.dead(caller)])

    @api.post("/api/queue/dead/{id}/retry", responses=answers(Ok, 404, 409))
    async def retry(caller: Asked, id: Number) -> Json:  # noqa: A002
        """Send a dead letter back to where it came from, with a clean slate of attempts."""
        await workload.retry_dead(caller, id)
        return Json(OK)

    @api.delete("/api/queue/dead/{id}", responses=answers(Ok, 404, 409))
    async def discard(caller: Asked, id: Number) -> Json:  # noqa: A002
        """Give a dead letter up for good."""
        await workload.discard_dead(caller, id)
        return Json(OK)

    @api.get("/api/queue/processing", responses=answers(list[AnswerModel]))
    async def processing(caller: Asked) -> Json:
        """What agents work on, and what waits in their hands."""
        return Json([work_document(each) for each in await workload.in_hand(caller)])

    @api.post("/api/queue/processing/{id}/kill", responses=answers(Ok, 404, 409))
    async def kill(caller: Asked, id: Number) -> Json:  # noqa: A002
        """End a message that is being worked on, for good; its turn stops at once."""
        agent = await workload.kill(caller, id)
        return Json({"ok": True, "agent": agent, "processKilled": True})

    return api
