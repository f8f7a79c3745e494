"""Parts of streams on every store: a part that was taken is kept, and is never silently another."""

import pytest
from tests.conformance.helpers import read

from postroom import Room
from postroom.kernel import service_commands, streams
from postroom.kernel.ports import Chunk
from postroom.kernel.streams import ChunkDiffers, Stream


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
