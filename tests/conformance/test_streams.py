"""Parts of streams on every store: a part that was taken is kept, and is never silently another."""

from typing import Any

import pytest
from tests.conformance.helpers import read
from tests.conftest import OpenRoom

from postroom import Room
from postroom.clock import ManualClock
from postroom.errors import InvalidField
from postroom.kernel import service_commands, streams
from postroom.kernel.limits import Limits
from postroom.kernel.ports import Chunk
from postroom.kernel.streams import ChunkDiffers, Stream, StreamEnded, StreamIncomplete, StreamNotFound


@pytest.fixture
async def stream(room: Room) -> Room:
    await room.run(service_commands.OpenStream(scope="default", stream_id="s1"))
    return room


async def _append(room: Room, *chunks: tuple[int, bytes]) -> Stream:
    return await room.run(service_commands.AppendChunks(scope="default", stream_id="s1", chunks=chunks))


def _kept(room: Room) -> list[Chunk]:
    return read(room, lambda reader: reader.chunks("s1", -1, 100))


async def test_two_parts_with_one_number_in_one_request_are_refused(stream: Room) -> None:
    await _append(stream, (0, b"a"))
    with pytest.raises(ChunkDiffers):
        await _append(stream, (1, b"b"), (1, b"c"))
    assert _kept(stream) == [Chunk(0, b"a")]


async def test_the_same_part_twice_in_one_request_is_one(stream: Room) -> None:
    answer = await _append(stream, (1, b"b"), (0, b"a"), (1, b"b"))
    assert (answer.chunks, answer.bytes, answer.highest) == (2, 2, 1)
    assert _kept(stream) == [Chunk(0, b"a"), Chunk(1, b"b")]


async def test_parts_that_are_there_already_do_not_make_the_stream_too_long(
    stream: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "STREAM_BYTES", 4)
    await _append(stream, (0, b"abcd"))
    answer = await _append(stream, (0, b"abcd"))
    assert (answer.chunks, answer.bytes) == (1, 4)


async def _open(room: Room, **options: Any) -> Stream:
    return await room.run(service_commands.OpenStream(scope="default", stream_id="s1", **options))


async def _close(room: Room, **options: Any) -> Stream:
    return await room.run(service_commands.CloseStream(scope="default", stream_id="s1", **options))


async def test_a_closed_stream_is_one_message_however_often_it_is_closed(room: Room) -> None:
    await room.create_queue("texts")
    await _open(room, queue="default/texts", labels={"a": 1}, correlation_id="talk")
    await _append(room, (1, b" world"), (0, b"hello"))
    closed = await _close(room, total_chunks=2)
    assert await _close(room) == closed
    [message] = (await room.messages(queue="texts")).messages
    assert (message.id, message.body, message.labels) == (closed.message_id, "hello world", {"a": 1})
    assert (message.correlation_id, message.content_type) == ("talk", "text/plain")
    with pytest.raises(StreamEnded):
        await _append(room, (2, b"!"))
    with pytest.raises(StreamEnded):
        await _close(room, abort=True)


@pytest.mark.parametrize(
    ("content_type", "data", "body"),
    [("application/json", b'{"a": 1}', {"a": 1}), ("application/octet-stream", b"\xff\x00", b"\xff\x00")],
)
async def test_the_message_has_the_content_type_of_the_stream(
    room: Room, content_type: str, data: bytes, body: Any
) -> None:
    await room.create_queue("texts")
    await _open(room, queue="default/texts", content_type=content_type)
    await _append(room, (0, data))
    await _close(room)
    [message] = (await room.messages(queue="texts")).messages
    assert (message.content_type, message.body) == (content_type, body)


async def test_what_is_not_the_json_it_was_said_to_be_leaves_the_stream_open(room: Room) -> None:
    await room.create_queue("texts")
    await _open(room, queue="default/texts", content_type="application/json")
    await _append(room, (0, b'{"a"'))
    with pytest.raises(InvalidField):
        await _close(room)
    await _append(room, (1, b": 1}"))
    assert (await _close(room)).state == "closed"


async def test_what_is_too_long_for_a_message_is_told_where_to_read_it(open_room: OpenRoom) -> None:
    async with open_room(limits=Limits(body_bytes=100)) as room:
        await room.create_queue("texts")
        await _open(room, queue="default/texts")
        await _append(room, (0, b"x" * 101))
        await _close(room)
        [message] = (await room.messages(queue="texts")).messages
        assert message.body == {"stream_id": "s1", "bytes": 101}


async def test_a_stream_that_lacks_parts_or_has_too_many_cannot_be_closed(stream: Room) -> None:
    await _append(stream, (0, b"a"), (2, b"c"))
    with pytest.raises(StreamIncomplete, match="lacks 1 of its parts: 1"):
        await _close(stream)
    await _append(stream, (1, b"b"))
    with pytest.raises(InvalidField, match="part 2 is there"):
        await _close(stream, total_chunks=2)
    closed = await _close(stream)
    assert (closed.state, closed.total_chunks, closed.message_id) == ("closed", 3, None)


async def test_an_aborted_stream_takes_nothing_more(stream: Room) -> None:
    await _append(stream, (0, b"a"))
    aborted = await _close(stream, abort=True, reason="enough")
    assert (aborted.state, aborted.reason) == ("aborted", "enough")
    for again in (_close(stream), _append(stream, (1, b"b"))):
        with pytest.raises(StreamEnded):
            await again


async def test_a_stream_to_which_nothing_was_added_for_an_hour_is_given_up(
    stream: Room, clock: ManualClock
) -> None:
    clock.advance(3601)
    with pytest.raises(StreamEnded, match="aborted"):
        await _append(stream, (0, b"a"))


async def test_a_part_that_is_too_long_or_a_stream_that_is_not_there_is_refused(
    stream: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidField):
        await _append(stream, (0, b"x" * (streams.CHUNK_BYTES + 1)))
    monkeypatch.setattr(streams, "STREAM_BYTES", 4)
    with pytest.raises(InvalidField):
        await _append(stream, (0, b"abcde"))
    assert _kept(stream) == []
    with pytest.raises(StreamNotFound):
        await stream.run(service_commands.CloseStream(scope="default", stream_id="s2"))


async def test_all_parts_are_read_page_by_page(stream: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PAGE", 2)
    await _append(stream, *((number, b"%d" % number) for number in range(5)))
    found = read(stream, lambda reader: streams.all_chunks(reader, "s1"))
    assert b"".join(chunk.data for chunk in found) == b"01234"
