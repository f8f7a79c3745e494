"""Streams: opened, written part by part, followed live, closed into one message or given up."""

import base64
import binascii
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import Field

from postroom.api.openapi import says
from postroom.api.queue import upkeep_views as views
from postroom.api.queue.bodies import RequestBody, Text, Whole
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.gate import Calling, RouteCall, needs
from postroom.api.responses import Json
from postroom.errors import InvalidField
from postroom.kernel import jsontext, streams
from postroom.services.streams import MOST_CHUNKS, MOST_WAIT_S, OPEN, StreamParts, Streams

PATH = "/scopes/{scope_id}/streams"
After = Annotated[int, Query(ge=-1, le=2**53, description="The number of a part")]


class NewStream(RequestBody):
    queue_id: str | None = Field(default=None, description="Where the joined message goes when it is closed")
    correlation_id: Text | None = None
    content_type: Text = "text/plain"
    message_type: Text = "stream"
    labels: dict[str, Any] = Field(default_factory=dict)


class NewChunk(RequestBody):
    sequence: Annotated[Whole, Field(ge=0), says(maximum=streams.MOST_CHUNKS - 1)]
    data: str = Field(description="Text; base64 when `encoding` says so")
    encoding: Annotated[str, says(enum=["base64"])] | None = None

    def content(self) -> bytes:
        if self.encoding is None:
            return self.data.encode()
        if self.encoding != "base64":
            raise InvalidField("encoding", f"is {self.encoding!r}, must be base64 or nothing")
        try:
            return base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidField("data", "is not base64") from None


class NewChunks(RequestBody):
    chunks: Annotated[list[NewChunk], Field(min_length=1, max_length=MOST_CHUNKS)]


class Closing(RequestBody):
    total_chunks: Annotated[Whole, says(minimum=0, maximum=streams.MOST_CHUNKS)] | None = None


class Giving(RequestBody):
    reason: Text | None = None


class EventFrames(StreamingResponse):
    """Not FastAPI's own class, which a route may only name if it is a generator itself."""

    media_type = "text/event-stream"


async def _frames(call: RouteCall, parts: AsyncIterator[StreamParts]) -> AsyncIterator[bytes]:
    async for found in parts:
        for chunk in found.chunks:
            text = jsontext.text(views.chunk(chunk))
            yield format_sse_event(data_str=text, event="chunk", id=str(chunk.number))
        if found.of.state != OPEN and len(found.chunks) < streams.PAGE:
            text = jsontext.text(views.stream(found.of, call.ids))
            yield format_sse_event(data_str=text, event=found.of.state)
        elif not found.chunks:
            yield KEEPALIVE_COMMENT


def add(routes: APIRouter) -> None:
    @routes.post(PATH, status_code=201, openapi_extra=needs(Streams.OPEN))
    async def open_stream(call: Calling, scope_id: str, body: NewStream) -> Json:
        """Open a stream. Nothing added for an hour, and it is given up."""
        made = await call.services.streams.open(
            call.caller,
            scope_id,
            queue=body.queue_id,
            content_type=body.content_type,
            message_type=body.message_type,
            correlation_id=body.correlation_id,
            labels=body.labels,
        )
        return one(views.stream(made, call.ids), status=201)

    @routes.get(PATH, openapi_extra=needs(Streams.LIST))
    async def list_streams(call: Calling, scope_id: str, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """The streams of a scope, open and ended."""
        found = await call.services.streams.list_all(call.caller, scope_id)
        return many(*cut([views.stream(each, call.ids) for each in found], cursor, limit))

    @routes.get(PATH + "/{stream_id}", openapi_extra=needs(Streams.READ))
    async def read_stream(call: Calling, scope_id: str, stream_id: str) -> Json:
        """How it stands, everything so far joined in order, and which parts are missing."""
        found = await call.services.streams.read(call.caller, scope_id, stream_id)
        return one(views.whole_stream(found, call.ids))

    @routes.post(PATH + "/{stream_id}/chunks", openapi_extra=needs(Streams.APPEND))
    async def append_chunks(call: Calling, scope_id: str, stream_id: str, body: NewChunks | NewChunk) -> Json:
        """Add parts, in any order. One that is there already is ignored; one that differs is a conflict."""
        chunks = body.chunks if isinstance(body, NewChunks) else [body]
        parts = [(chunk.sequence, chunk.content()) for chunk in chunks]
        changed = await call.services.streams.append(call.caller, scope_id, stream_id, parts)
        return one(views.stream(changed, call.ids))

    @routes.get(PATH + "/{stream_id}/chunks", openapi_extra=needs(Streams.READ))
    async def read_chunks(
        call: Calling,
        scope_id: str,
        stream_id: str,
        after: After = -1,
        limit: Limit = 100,
        wait_s: Annotated[float, Query(ge=0, le=MOST_WAIT_S)] = 0,
    ) -> Json:
        """Parts after a number; with `wait_s`, those that come meanwhile."""
        found = await call.services.streams.read_parts(
            call.caller, scope_id, stream_id, after=after, limit=limit, wait_s=wait_s
        )
        shown = [views.chunk(chunk) for chunk in found.chunks]
        return Json({"status": "ok", "data": shown, "state": found.of.state})

    @routes.get(
        PATH + "/{stream_id}/follow",
        openapi_extra=needs(Streams.FOLLOW),
        response_class=EventFrames,
        response_model=None,
    )
    async def follow_stream(call: Calling, scope_id: str, stream_id: str, after: After = -1) -> EventFrames:
        """Server-sent events: every part as it comes, and at last how the stream ended."""
        parts = await call.services.streams.follow(call.caller, scope_id, stream_id, after=after)
        return EventFrames(_frames(call, parts))

    @routes.post(PATH + "/{stream_id}/close", openapi_extra=needs(Streams.CLOSE))
    async def close_stream(call: Calling, scope_id: str, stream_id: str, body: Closing | None = None) -> Json:
        """Join the parts to one message of the stream's queue. Refused while parts are missing."""
        changed = await call.services.streams.close(
            call.caller, scope_id, stream_id, total_chunks=body.total_chunks if body else None
        )
        return one(views.stream(changed, call.ids))

    @routes.post(PATH + "/{stream_id}/abort", openapi_extra=needs(Streams.ABORT))
    async def abort_stream(
        call: Calling, scope_id: str, stream_id: str, body: Giving | None = None
    ) -> Response:
        """Give a stream up: no message is made of it."""
        changed = await call.services.streams.abort(
            call.caller, scope_id, stream_id, reason=body.reason if body else None
        )
        return one(views.stream(changed, call.ids))
