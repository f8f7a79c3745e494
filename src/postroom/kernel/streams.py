"""Streams: parts in a numbered sequence, for long generations, readable while they are written.

Parts may come twice and out of order. When the stream is closed, the assembler joins them to one message.
"""

from typing import Any, Protocol

import msgspec

from postroom.errors import Conflict, InvalidField, NotFound
from postroom.kernel import checks, jsontext, service_commands
from postroom.kernel.model import Document, NewMessage
from postroom.kernel.ports import Chunk
from postroom.kernel.transitions.context import TransitionContext
from postroom.kernel.transitions.publish import publish_one

KIND = "stream"
MOST_CHUNKS = 100_000
CHUNK_BYTES = 64 * 1024
STREAM_BYTES = 16 * 1024 * 1024
IDLE_S = 3600
PAGE = 1000
MISSING_SHOWN = 100


class StreamNotFound(NotFound):
    """There is no stream "{stream}"."""

    code = "STREAM_NOT_FOUND"


class StreamEnded(Conflict):
    """The stream {stream} is {state}, so nothing can be added to it."""

    code = "STREAM_CLOSED"


class StreamIncomplete(Conflict):
    """The stream {stream} lacks {count} of its parts: {missing}. Send them, or abort it."""

    code = "STREAM_INCOMPLETE"


class ChunkDiffers(Conflict):
    """Part {number} of the stream {stream} is there already and says something else."""

    code = "CHUNK_CONFLICT"


class ChunkReads(Protocol):
    def chunks(self, stream_id: str, after: int, limit: int) -> list[Chunk]: ...


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    content_type: str
    message_type: str
    state: str = "open"
    queue: str | None = None
    correlation_id: str | None = None
    labels: dict[str, Any] = msgspec.field(default_factory=dict)
    chunks: int = 0
    bytes: int = 0
    highest: int = -1
    total_chunks: int | None = None
    message_id: str | None = None
    reason: str | None = None
    created_at: int = 0
    updated_at: int = 0

    def state_at(self, now: int) -> str:
        """One to which nothing was added for an hour is given up."""
        idle = self.state == "open" and self.updated_at + IDLE_S * 1_000_000 <= now
        return "aborted" if idle else self.state


def read(data: dict[str, Any]) -> Stream:
    return msgspec.convert(data, Stream)


def _find(ctx: TransitionContext, scope_id: int, stream_id: str) -> Stream:
    found = ctx.session.document(ctx.tenant, KIND, f"{scope_id}/{stream_id}")
    if found is None or found.gone:
        raise StreamNotFound(stream=stream_id)
    return read(found.data)


def _save(ctx: TransitionContext, scope_id: int, stream: Stream) -> Stream:
    key = f"{scope_id}/{stream.id}"
    before = ctx.session.document(ctx.tenant, KIND, key)
    document = Document.next(before, KIND, key, msgspec.to_builtins(stream), ctx.now)
    ctx.session.put_document(ctx.tenant, document)
    return stream


def open_stream(ctx: TransitionContext, command: service_commands.OpenStream) -> Stream:
    scope = ctx.scope(command.scope)
    checks.check_name("content_type", command.content_type, ctx.limits)
    checks.check_name("message_type", command.message_type, ctx.limits)
    checks.check_text("correlation_id", command.correlation_id, ctx.limits)
    checks.check_labels(command.labels, ctx.limits)
    if command.queue is not None:
        ctx.queue(command.queue)
    stream = Stream(
        id=command.stream_id,
        content_type=command.content_type,
        message_type=command.message_type,
        queue=command.queue,
        correlation_id=command.correlation_id,
        labels=command.labels,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    ctx.emit("stream.opened", scope=scope.slug, data={"stream": stream.id})
    return _save(ctx, scope.id, stream)


def append(ctx: TransitionContext, command: service_commands.AppendChunks) -> Stream:
    """Not an event for each part: who reads the stream sees them, and its end is one."""
    scope = ctx.scope(command.scope)
    stream = _find(ctx, scope.id, command.stream_id)
    state = stream.state_at(ctx.now)
    if state != "open":
        raise StreamEnded(stream=stream.id, state=state)
    new: dict[int, bytes] = {}
    # All are checked before any is written.
    for number, data in command.chunks:
        checks.check_count("sequence", number, least=0, most=MOST_CHUNKS - 1)
        if len(data) > CHUNK_BYTES:
            raise InvalidField("data", f"has {len(data)} bytes, a part has at most {CHUNK_BYTES}")
        known = _part(ctx, stream, number, new)
        if known is None:
            new[number] = data
        elif known != data:
            raise ChunkDiffers(number=number, stream=stream.id)
    size = sum(map(len, new.values()))
    if stream.bytes + size > STREAM_BYTES:
        raise InvalidField("data", f"would make the stream longer than {STREAM_BYTES} bytes")
    if new:
        ctx.session.direct.add_chunks(stream.id, [Chunk(number, data) for number, data in new.items()])
    changed = msgspec.structs.replace(
        stream,
        chunks=stream.chunks + len(new),
        bytes=stream.bytes + size,
        highest=max(stream.highest, *new, -1),
        updated_at=ctx.now,
    )
    return _save(ctx, scope.id, changed)


def _part(ctx: TransitionContext, stream: Stream, number: int, new: dict[int, bytes]) -> bytes | None:
    """The part with this number, if it is there or comes with the same request."""
    if number in new:
        return new[number]
    known = ctx.session.tx.chunks(stream.id, number - 1, 1)
    return known[0].data if known and known[0].number == number else None


def missing(stream: Stream, numbers: set[int]) -> list[int]:
    total = stream.total_chunks if stream.total_chunks is not None else stream.highest + 1
    return [number for number in range(total) if number not in numbers]


def all_chunks(reads: ChunkReads, stream_id: str) -> list[Chunk]:
    found: list[Chunk] = []
    after = -1
    while page := reads.chunks(stream_id, after, PAGE):
        found += page
        after = page[-1].number
    return found


def close(ctx: TransitionContext, command: service_commands.CloseStream) -> Stream:
    """Closing again says the same; the message is made once."""
    scope = ctx.scope(command.scope)
    stream = _find(ctx, scope.id, command.stream_id)
    if stream.state == "closed" and not command.abort:
        return stream
    if stream.state_at(ctx.now) != "open":
        raise StreamEnded(stream=stream.id, state=stream.state_at(ctx.now))
    if command.abort:
        changed = msgspec.structs.replace(stream, state="aborted", reason=command.reason, updated_at=ctx.now)
        ctx.emit("stream.aborted", scope=scope.slug, data={"stream": stream.id})
        return _save(ctx, scope.id, changed)
    if command.total_chunks is not None:
        checks.check_count("total_chunks", command.total_chunks, least=0, most=MOST_CHUNKS)
        stream = msgspec.structs.replace(stream, total_chunks=command.total_chunks)
    chunks = all_chunks(ctx.session.tx, stream.id)
    lacking = missing(stream, {chunk.number for chunk in chunks})
    if lacking:
        shown = ", ".join(map(str, lacking[:MISSING_SHOWN]))
        raise StreamIncomplete(stream=stream.id, count=len(lacking), missing=shown)
    if stream.total_chunks is not None and stream.highest >= stream.total_chunks:
        raise InvalidField("total_chunks", f"is {stream.total_chunks}, but part {stream.highest} is there")
    message_id = _assemble(ctx, stream, b"".join(chunk.data for chunk in chunks))
    changed = msgspec.structs.replace(
        stream, state="closed", total_chunks=len(chunks), message_id=message_id, updated_at=ctx.now
    )
    data = {"stream": stream.id, "chunks": len(chunks), "bytes": stream.bytes, "message_id": message_id}
    ctx.emit("stream.closed", scope=scope.slug, data=data)
    return _save(ctx, scope.id, changed)


def _assemble(ctx: TransitionContext, stream: Stream, joined: bytes) -> str | None:
    """One message with everything; when that is too long for a message, with where it can be read."""
    if stream.queue is None:
        return None
    body: Any = {"stream_id": stream.id, "bytes": len(joined)}
    kind = checks.JSON
    if len(joined) <= ctx.limits.body_bytes:
        kind = stream.content_type
        body = joined
        if kind == checks.JSON:
            try:
                body = jsontext.decode(joined)
            except msgspec.DecodeError:
                raise InvalidField("data", "joined together is not the JSON it was said to be") from None
        elif kind.startswith("text/"):
            body = joined.decode("utf-8", "replace")
    message = NewMessage(
        body=body,
        content_type=kind,
        message_type=stream.message_type,
        labels=stream.labels or None,
        correlation_id=stream.correlation_id,
        idempotency_key=f"stream:{stream.id}",
        source_type="stream",
        source_id=stream.id,
    )
    return publish_one(ctx, ctx.queue(stream.queue), message).id
