"""`/api/insights`, `/api/traces`, `/api/history` and `/api/pipeline`: what the lake says."""

from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import HTMLResponse

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.openapi import AnswerModel, answers

Day = Annotated[date | None, Query(description="A day, like 2026-11-01.")]
Limit = Annotated[int, Query(ge=1, le=500)]
# What the authentication and the lake may say to any of these.
REFUSALS = {status: told for status, told in answers(AnswerModel, 404, 409).items() if status != 200}


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["insights"], responses=REFUSALS)
    insights = deps.services.insights

    @api.get("/api/pipeline/status")
    async def status(caller: Asked) -> dict[str, Any]:
        """How far the lake has come, and what a run that goes on now has done and has left to do."""
        return await insights.state(caller)

    @api.post("/api/pipeline/run", status_code=202)
    async def run(caller: Asked, full_refresh: bool = False) -> dict[str, int]:
        """Start a run, in a process of its own. Another one that goes on is a conflict."""
        return {"pid": await insights.start_run(caller, full_refresh=full_refresh)}

    @api.post("/api/pipeline/stop")
    async def stop(caller: Asked) -> dict[str, bool]:
        """Interrupt the run that this server started. What it committed stays."""
        return {"stopped": await insights.stop_run(caller)}

    @api.get("/api/insights/report", response_class=HTMLResponse)
    async def report(caller: Asked, since: Day = None, until: Day = None) -> HTMLResponse:
        """A page of everything below, to be read in a browser or kept."""
        return HTMLResponse(await insights.report(caller, since, until))

    @api.get("/api/insights/{topic}")
    async def insight(caller: Asked, topic: str, since: Day = None, until: Day = None) -> Any:
        """One table of the lake: overview, agents, agent_days, queues, hours, days, latency, channels,
        channel_days, costs, failures, handoffs, sla, runs, quarantine or expectations.
        """
        return await insights.insight(caller, topic, since, until)

    @api.get("/api/traces")
    async def traces(
        caller: Asked, since: Day = None, until: Day = None, limit: Limit = 50
    ) -> list[dict[str, Any]]:
        """Conversations, the newest first, with how long they took and what they cost."""
        return await insights.traces(caller, since, until, limit=limit)

    @api.get("/api/traces/{trace_id:path}")
    async def trace(caller: Asked, trace_id: str, tenant: str | None = None) -> dict[str, Any]:
        """Everything of one conversation, from the lake and from what it does not have yet."""
        return await insights.trace(caller, trace_id, tenant)

    @api.get("/api/history/search")
    async def search(
        caller: Asked,
        q: str,
        agent: str | None = None,
        channel: str | None = None,
        sender: str | None = None,
        since: Day = None,
        limit: Limit = 50,
    ) -> list[dict[str, Any]]:
        """What was said, by words; from the lake and from what it does not have yet."""
        return await insights.search(
            caller,
            tuple(q.split()),
            agent=agent,
            channel=channel,
            sender=sender,
            since=since,
            limit=limit,
        )

    return api
