"""Streams: opened, written part by part, followed live, closed into one message or given up."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from postroom.errors import SystemQueue
from postroom.kernel import checks, service_commands, streams
from postroom.kernel.access.acl import AccessVerdict
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import Scope
from postroom.kernel.ports import Chunk
from postroom.kernel.reader import Reader
from postroom.kernel.streams import Stream, StreamNotFound
from postroom.services import documents
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service
from postroom.services.errors import AclDenied

POLL_S = 5.0
MOST_WAIT_S = 60.0
MOST_CHUNKS = 500
OPEN = "open"


class ScopedStream(msgspec.Struct, frozen=True):
    """A stream with how it stands at the moment."""

    stream: Stream
    scope: str
    scope_id: int
    state: str


class StreamParts(msgspec.Struct, frozen=True):
    """Parts of a stream, in order."""

    of: ScopedStream
    chunks: list[Chunk]


class Streams(Service):
    OPEN = Operation("stream.open", Permission.PUBLISH, 201)
    LIST = Operation("stream.list", Permission.VIEW)
    READ = Operation("stream.read", Permission.VIEW)
    APPEND = Operation("stream.append", Permission.PUBLISH)
    FOLLOW = Operation("stream.follow", Permission.VIEW)
    CLOSE = Operation("stream.close", Permission.PUBLISH)
    ABORT = Operation("stream.abort", Permission.PUBLISH)

    async def open(
        self,
        caller: Caller,
        scope: str,
        *,
        queue: str | None = None,
        content_type: str = "text/plain",
        message_type: str = "stream",
        correlation_id: str | None = None,
        labels: dict[str, Any] | None = None,
    ) -> ScopedStream:
        """Open a stream. On closing it becomes a message of `queue`. Nothing added for an hour, and it is
        given up."""
        async with self._call(caller, self.OPEN) as call:
            call.subject.correlation_id = correlation_id

            def find(access: Access) -> tuple[Scope, str | None]:
                place = access.scope(scope)
                if queue is None:
                    return place, None
                target = access.queue(scope, queue)
                if target.system:
                    raise SystemQueue(queue=target.path, verb="published to by hand")
                return place, target.path

            place, path = await call.look(find)
            made = await call.commit(
                service_commands.OpenStream(
                    scope=place.slug,
                    stream_id=str(uuid.uuid4()),
                    queue=path,
                    content_type=content_type,
                    message_type=message_type,
                    correlation_id=correlation_id,
                    labels=labels or {},
                    **call.who,
                )
            )
            return self._scoped(place, made)

    async def list_all(self, caller: Caller, scope: str) -> list[ScopedStream]:
        """The streams of a scope, open and ended, that lead where the caller may look."""
        async with self._call(caller, self.LIST) as call:

            def find(access: Access) -> list[ScopedStream]:
                place = access.scope(scope)
                found = documents.list_documents(access, streams.KIND, f"{place.id}/")
                read = [streams.read(each.data) for each in found]
                return [self._scoped(place, each) for each in read if _is_seen(access, place, each)]

            return await call.look(find, quick=False)

    async def read(self, caller: Caller, scope: str, stream_id: str) -> StreamParts:
        """How it stands, with all its parts so far."""
        async with self._call(caller, self.READ) as call:

            def find(access: Access) -> StreamParts:
                of = self._find(access, scope, stream_id)
                return StreamParts(of, streams.all_chunks(access.reader, stream_id))

            return await call.look(find, quick=False)

    async def append(
        self, caller: Caller, scope: str, stream_id: str, chunks: Sequence[tuple[int, bytes]]
    ) -> ScopedStream:
        """Add parts, in any order. One that is there already is ignored; one that differs is a conflict."""
        async with self._call(caller, self.APPEND) as call:
            found = await call.look(lambda access: self._find(access, scope, stream_id))
            checks.check_count("chunks", len(chunks), least=1, most=MOST_CHUNKS)
            command = service_commands.AppendChunks(
                scope=found.scope, stream_id=stream_id, chunks=tuple(chunks), **call.who
            )
            return self._changed(found, await call.commit(command))

    async def read_parts(
        self,
        caller: Caller,
        scope: str,
        stream_id: str,
        *,
        after: int = -1,
        limit: int = 100,
        wait_s: float = 0.0,
    ) -> StreamParts:
        """Parts after a number; when there are none yet, those that come within the time."""
        async with self._call(caller, self.READ) as call:
            found = await call.look(lambda access: self._find(access, scope, stream_id))
            checks.check_count("limit", limit, least=1, most=streams.PAGE)
            checks.check_seconds("wait_s", wait_s, least=0, most=MOST_WAIT_S)
            return await self._wait(found, caller.tenant, after, limit, wait_s)

    async def follow(
        self, caller: Caller, scope: str, stream_id: str, *, after: int = -1
    ) -> AsyncIterator[StreamParts]:
        """Every part as it comes; what comes last is how the stream ended. Now and then nothing, so that
        whoever reads sees that it goes on."""
        async with self._call(caller, self.FOLLOW) as call:
            found = await call.look(lambda access: self._find(access, scope, stream_id))
        return self._parts(found, caller.tenant, after)

    async def close(
        self, caller: Caller, scope: str, stream_id: str, *, total_chunks: int | None = None
    ) -> ScopedStream:
        """Join the parts to one message of the stream's queue. Refused while parts are missing."""
        async with self._call(caller, self.CLOSE) as call:
            found = await call.look(lambda access: self._find(access, scope, stream_id))
            call.subject.correlation_id = found.stream.correlation_id
            command = service_commands.CloseStream(
                scope=found.scope,
                stream_id=stream_id,
                total_chunks=total_chunks,
                **call.who,
            )
            return self._changed(found, await call.commit(command))

    async def abort(
        self, caller: Caller, scope: str, stream_id: str, *, reason: str | None = None
    ) -> ScopedStream:
        """Give a stream up: no message is made of it."""
        async with self._call(caller, self.ABORT) as call:
            found = await call.look(lambda access: self._find(access, scope, stream_id))
            command = service_commands.CloseStream(
                scope=found.scope,
                stream_id=stream_id,
                abort=True,
                reason=reason,
                **call.who,
            )
            return self._changed(found, await call.commit(command))

    # parts

    def _state(self, stream: Stream) -> str:
        return stream.state_at(self._now())

    def _changed(self, of: ScopedStream, stream: Stream) -> ScopedStream:
        return msgspec.structs.replace(of, stream=stream, state=self._state(stream))

    def _scoped(self, scope: Scope, stream: Stream) -> ScopedStream:
        return ScopedStream(stream, scope.slug, scope.id, self._state(stream))

    def _find(self, access: Access, scope: str, stream_id: str) -> ScopedStream:
        """A stream is for those who may look into the queue it leads to, or (to write) publish there."""
        place = access.scope(scope)
        document = access.reader.document(access.tenant, streams.KIND, f"{place.id}/{stream_id}")
        if document is None or document.gone:
            raise StreamNotFound(stream=stream_id)
        found = streams.read(document.data)
        verdict = _verdict(access, place, found)
        if verdict is AccessVerdict.HIDDEN:
            raise StreamNotFound(stream=stream_id)
        if verdict is not AccessVerdict.ALLOWED:
            raise AclDenied(place=found.queue, permission=access.wanted)
        return self._scoped(place, found)

    async def _look(self, of: ScopedStream, tenant: str, after: int, limit: int) -> StreamParts:
        def find(reader: Reader) -> StreamParts:
            document = reader.document(tenant, streams.KIND, f"{of.scope_id}/{of.stream.id}")
            if document is None or document.gone:
                raise StreamNotFound(stream=of.stream.id)
            stream = streams.read(document.data)
            return StreamParts(self._changed(of, stream), reader.chunks(of.stream.id, after, limit))

        return await self._context.room.look(find)

    async def _wait(
        self, of: ScopedStream, tenant: str, after: int, limit: int, wait_s: float
    ) -> StreamParts:
        loop, closing = asyncio.get_running_loop(), self._context.closing
        until = loop.time() + wait_s
        async with self._context.room.woken(commits=True) as news:
            while True:
                news.clear()
                found = await self._look(of, tenant, after, limit)
                left = until - loop.time()
                if found.chunks or found.of.state != OPEN or left <= 0 or closing.is_set():
                    return found
                await _either(news, closing, min(left, POLL_S))

    async def _parts(self, of: ScopedStream, tenant: str, after: int) -> AsyncIterator[StreamParts]:
        while True:
            found = await self._wait(of, tenant, after, streams.PAGE, POLL_S)
            yield found
            if found.chunks:
                after = found.chunks[-1].number
            ended = found.of.state != OPEN and len(found.chunks) < streams.PAGE
            if ended or self._context.closing.is_set():
                return  # of a server that closes, who comes back goes on from there


async def _either(news: asyncio.Event, closing: asyncio.Event, seconds: float) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in (news, closing)]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _verdict(access: Access, scope: Scope, stream: Stream) -> AccessVerdict:
    queue = None
    if stream.queue is not None:
        queue = access.reader.queue(access.tenant, *checks.split_path(stream.queue))
    return access.verdict(scope, queue, access.wanted)


def _is_seen(access: Access, scope: Scope, stream: Stream) -> bool:
    return _verdict(access, scope, stream) is AccessVerdict.ALLOWED
