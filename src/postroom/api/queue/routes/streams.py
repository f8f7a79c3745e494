"""Streams: opened, written part by part, followed live, closed into one message or given up."""

import asyncio
import base64
import binascii
import contextlib
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from pydantic import Field

from postroom.api.queue import documents, views
from postroom.api.queue.access import AccessCheck, find_queue, needs
from postroom.api.queue.bodies import RequestBody, Text
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.request_context import RequestContext, Visiting
from postroom.api.queue.service import new_id
from postroom.api.responses import Json
from postroom.errors import InvalidField, QueueNotFound, SystemQueue
from postroom.kernel import jsontext, service_commands, streams
from postroom.kernel.access.acl import AccessVerdict
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import Queue
from postroom.kernel.ports import Reader
from postroom.kernel.service_ports import Chunk
from postroom.kernel.streams import Stream, StreamNotFound
from postroom.services.errors import AclDenied

PLACE = "/scopes/{scope_id}/streams"
POLL_S = 5.0
After = Annotated[int, Query(ge=-1, le=2**53, description="The number of a part")]


class NewStream(RequestBody):
    queue_id: str | None = Field(default=None, description="Where the joined message goes when it is closed")
    correlation_id: Text | None = None
    content_type: Text = "text/plain"
    message_type: Text = "stream"
    labels: dict[str, Any] = Field(default_factory=dict)


class NewChunk(RequestBody):
    sequence: Annotated[int, Field(ge=0)]
    data: str = Field(description="Text; base64 when `encoding` says so")
    encoding: str | None = None


class NewChunks(RequestBody):
    chunks: Annotated[list[NewChunk], Field(min_length=1, max_length=500)]


class Closing(RequestBody):
    total_chunks: int | None = None


class Giving(RequestBody):
    reason: Text | None = None


def shown(visit: RequestContext, found: Stream) -> dict[str, Any]:
    return {
        "id": found.id,
        "scope_id": visit.opaque.scope(visit.scope.id),
        "state": found.state_at(visit.house.clock.now()),
        "queue": found.queue,
        "content_type": found.content_type,
        "message_type": found.message_type,
        "correlation_id": found.correlation_id,
        "labels": found.labels,
        "chunks": found.chunks,
        "bytes": found.bytes,
        "total_chunks": found.total_chunks,
        "message_id": found.message_id,
        "reason": found.reason,
        "created_at": views.when(found.created_at),
        "updated_at": views.when(found.updated_at),
    }


def chunk_shown(found: Stream, chunk: Chunk) -> dict[str, Any]:
    """A part may end in the middle of a letter; then it is shown as base64."""
    try:
        return {"sequence": chunk.number, "data": chunk.data.decode()}
    except UnicodeDecodeError:
        data = base64.b64encode(chunk.data).decode()
        return {"sequence": chunk.number, "data": data, "encoding": "base64"}


def _find(reader: Reader, visit: RequestContext, stream_id: str) -> Stream:
    found = reader.document(visit.tenant, streams.KIND, f"{visit.scope.id}/{stream_id}")
    if found is None or found.gone:
        raise StreamNotFound(stream=stream_id)
    return streams.read(found.data)


def _bytes(chunk: NewChunk) -> bytes:
    if chunk.encoding is None:
        return chunk.data.encode()
    if chunk.encoding != "base64":
        raise InvalidField("encoding", f"is {chunk.encoding!r}, must be base64 or nothing")
    try:
        return base64.b64decode(chunk.data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidField("data", "is not base64") from None


async def _look(visit: RequestContext, stream_id: str, after: int, limit: int) -> tuple[Stream, list[Chunk]]:
    return await visit.house.ask(
        lambda reader: (_find(reader, visit, stream_id), reader.chunks(stream_id, after, limit))
    )


@contextlib.asynccontextmanager
async def _woken(visit: RequestContext) -> AsyncIterator[asyncio.Event]:
    """An event that is set whenever something was committed."""
    loop, rung = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(rung.set)

    hub = visit.house.room._core.wakeups
    hub.follow(wake, commits=True)
    try:
        yield rung
    finally:
        hub.unfollow(wake)


async def _wait(
    visit: RequestContext, stream_id: str, after: int, limit: int, wait_s: float
) -> tuple[Stream, list[Chunk]]:
    """Parts after a number; when there are none yet, those that come within the time."""
    until = asyncio.get_running_loop().time() + wait_s
    async with _woken(visit) as rung:
        while True:
            rung.clear()
            found, chunks = await _look(visit, stream_id, after, limit)
            left = until - asyncio.get_running_loop().time()
            over = left <= 0 or visit.house.closing.is_set()
            if chunks or over or found.state_at(visit.house.clock.now()) != "open":
                return found, chunks
            await _either(rung, visit.house.closing, min(left, POLL_S))


async def _either(rung: asyncio.Event, closing: asyncio.Event, seconds: float) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in (rung, closing)]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _follow(visit: RequestContext, stream_id: str, after: int) -> AsyncIterator[bytes]:
    while True:
        found, chunks = await _wait(visit, stream_id, after, streams.PAGE, POLL_S)
        for chunk in chunks:
            after = chunk.number
            text = jsontext.text(chunk_shown(found, chunk))
            yield format_sse_event(data_str=text, event="chunk", id=str(chunk.number))
        state = found.state_at(visit.house.clock.now())
        if state != "open" and len(chunks) < streams.PAGE:
            yield format_sse_event(data_str=jsontext.text(shown(visit, found)), event=state)
            return
        if visit.house.closing.is_set():
            return  # who comes back goes on from there
        if not chunks:
            yield KEEPALIVE_COMMENT


async def _target(visit: RequestContext, name: str) -> Queue:
    """A queue into which the caller may publish."""

    def look(reader: Reader) -> Queue:
        queue = find_queue(reader, visit, visit.scope, name)
        verdict = AccessCheck(reader, visit, visit.house.clock.now()).verdict(
            visit.scope, queue.id, Permission.PUBLISH
        )
        if verdict is AccessVerdict.HIDDEN:
            raise QueueNotFound(queue=name)
        if verdict is not AccessVerdict.ALLOWED:
            raise AclDenied(place=queue.path, permission=Permission.PUBLISH)
        return queue

    queue = await visit.house.ask(look)
    if queue.system:
        raise SystemQueue(queue=queue.path, verb="published to by hand")
    return queue


def add(routes: APIRouter) -> None:
    @routes.post(PLACE, status_code=201, openapi_extra=needs("publish", "stream.open"))
    async def open_stream(visit: Visiting, scope_id: str, body: NewStream) -> Json:
        """Open a stream. Nothing added for an hour, and it is given up."""
        path = None
        if body.queue_id is not None:
            path = (await _target(visit, body.queue_id)).path
        made = await visit.house.run(
            service_commands.OpenStream(
                scope=visit.scope.slug,
                stream_id=new_id(),
                queue=path,
                content_type=body.content_type,
                message_type=body.message_type,
                correlation_id=body.correlation_id,
                labels=body.labels,
                **visit.who,
            )
        )
        visit.correlation_id = body.correlation_id
        return one(shown(visit, made), status=201)

    @routes.get(PLACE, openapi_extra=needs("view", "stream.list"))
    async def list_streams(visit: Visiting, scope_id: str, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """The streams of a scope, open and ended."""
        found = await documents.listed(visit, streams.KIND, f"{visit.scope.id}/")
        return many(*cut([shown(visit, streams.read(each.data)) for each in found], cursor, limit))

    @routes.get(PLACE + "/{stream_id}", openapi_extra=needs("view", "stream.read"))
    async def read_stream(visit: Visiting, scope_id: str, stream_id: str) -> Json:
        """How it stands, everything so far joined in order, and which parts are missing."""

        def look(reader: Reader) -> tuple[Stream, list[Chunk]]:
            return _find(reader, visit, stream_id), streams.all_chunks(reader, stream_id)

        found, chunks = await visit.house.ask(look)
        joined = b"".join(chunk.data for chunk in chunks)
        lacking = streams.missing(found, {chunk.number for chunk in chunks})
        whole = chunk_shown(found, Chunk(0, joined))
        answer = {**shown(visit, found), "data": whole["data"], "missing": lacking[: streams.MISSING_SHOWN]}
        if "encoding" in whole:
            answer["encoding"] = whole["encoding"]
        return one(answer)

    @routes.post(PLACE + "/{stream_id}/chunks", openapi_extra=needs("publish", "stream.append"))
    async def append_chunks(
        visit: Visiting, scope_id: str, stream_id: str, body: NewChunks | NewChunk
    ) -> Json:
        """Add parts, in any order. One that is there already is ignored; one that differs is a conflict."""
        chunks = body.chunks if isinstance(body, NewChunks) else [body]
        parts = tuple((chunk.sequence, _bytes(chunk)) for chunk in chunks)
        command = service_commands.AppendChunks(
            scope=visit.scope.slug, stream_id=stream_id, chunks=parts, **visit.who
        )
        return one(shown(visit, await visit.house.run(command)))

    @routes.get(PLACE + "/{stream_id}/chunks", openapi_extra=needs("view", "stream.read"))
    async def read_chunks(
        visit: Visiting,
        scope_id: str,
        stream_id: str,
        after: After = -1,
        limit: Limit = 100,
        wait_s: Annotated[float, Query(ge=0, le=60)] = 0,
    ) -> Json:
        """Parts after a number; with `wait_s`, those that come meanwhile."""
        found, chunks = await _wait(visit, stream_id, after, limit, wait_s)
        answer = {"status": "ok", "data": [chunk_shown(found, chunk) for chunk in chunks]}
        answer["state"] = shown(visit, found)["state"]
        return Json(answer)

    @routes.get(
        PLACE + "/{stream_id}/follow", openapi_extra=needs("view", "stream.follow"), response_model=None
    )
    async def follow_stream(
        visit: Visiting, scope_id: str, stream_id: str, after: After = -1
    ) -> EventSourceResponse:
        """Server-sent events: every part as it comes, and at last how the stream ended."""
        await _look(visit, stream_id, after, 1)
        return EventSourceResponse(_follow(visit, stream_id, after))

    @routes.post(PLACE + "/{stream_id}/close", openapi_extra=needs("publish", "stream.close"))
    async def close_stream(
        visit: Visiting, scope_id: str, stream_id: str, body: Closing | None = None
    ) -> Json:
        """Join the parts to one message of the stream's queue. Refused while parts are missing."""
        command = service_commands.CloseStream(
            scope=visit.scope.slug,
            stream_id=stream_id,
            total_chunks=body.total_chunks if body else None,
            **visit.who,
        )
        found: Stream = await visit.house.run(command)
        visit.message_id, visit.correlation_id = found.message_id, found.correlation_id
        return one(shown(visit, found))

    @routes.post(PLACE + "/{stream_id}/abort", openapi_extra=needs("publish", "stream.abort"))
    async def abort_stream(
        visit: Visiting, scope_id: str, stream_id: str, body: Giving | None = None
    ) -> Response:
        """Give a stream up: no message is made of it."""
        command = service_commands.CloseStream(
            scope=visit.scope.slug,
            stream_id=stream_id,
            abort=True,
            reason=body.reason if body else None,
            **visit.who,
        )
        return one(shown(visit, await visit.house.run(command)))
