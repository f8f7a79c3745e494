"""`GET /api/events/stream`: what happens, as it happens, with ids to come back by."""

from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.sse import EventSourceResponse

from postroom.api.dependencies import Dependencies
from postroom.api.openapi import answers
from postroom.api.stream.frames import EventFilter, frame, place, words
from postroom.api.stream.tail import EventTail

Names = Annotated[list[str] | None, Query(max_length=50)]
ABOUT = {
    "description": "The stream",
    "content": {
        "text/event-stream": {"schema": {"type": "string"}, "example": "event: connected\ndata: {}\n\n"}
    },
}


def routes(deps: Dependencies, tail: EventTail) -> APIRouter:
    api = APIRouter(tags=["events"])

    @api.get("/api/events/stream", responses={**answers(), 200: ABOUT}, response_model=None)
    async def stream(
        type: Names = None,  # noqa: A002
        agent: Names = None,
        team: Names = None,
        since: Annotated[str | None, Query(max_length=40, description="An id; what came after it")] = None,
        until: Annotated[
            str | None, Query(max_length=40, description="An id; the stream ends there, or where all is told")
        ] = None,
        last_event_id: Annotated[str | None, Header(max_length=40)] = None,
    ) -> EventSourceResponse:
        """Live events; with the id of the last one seen, in `Last-Event-ID` or `since`, from there on."""
        start = tail.end
        if last_event_id:
            start = place(last_event_id, "Last-Event-ID")
        elif since:
            start = place(since, "since")
        end = place(until, "until") if until else None
        wanted = EventFilter(words(type), words(agent), words(team))
        now = deps.clock.now() // 1000
        greeting = frame(min(start, tail.end), "connected", {"timestamp": now}).wire

        async def body():
            yield greeting
            async for wire in tail.listen(start, wanted, end):
                yield wire

        return EventSourceResponse(body(), headers={"cache-control": "no-cache", "x-accel-buffering": "no"})

    return api
