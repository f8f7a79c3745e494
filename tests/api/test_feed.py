"""Executors elsewhere read the store through the office: the same rows as from its file. Nobody else does."""

import asyncio
import socket
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from postroom.errors import InvalidField
from postroom.pipeline.errors import FeedBroken
from postroom.pipeline.sources.feed import KINDS, FedSource, encode_range, fed
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.api.house import TOKEN, House


def rows(source: SqliteSource, kind: str, after: int, up_to: int) -> list[dict[str, Any]]:
    return [row for batch in getattr(source, kind)(after, up_to) for row in batch.to_pylist()]


def store_of(house: House) -> SqliteSource:
    return SqliteSource(str(house.home / "postroom.db"))


async def fill(house: House) -> SqliteSource:
    await house.room.create_queue("jobs")
    for number in range(40):
        await house.room.publish("jobs", {"n": number, "text": "ä" * number})
    for message in await house.room.claim("jobs", limit=20):
        await house.room.complete(message)
    return store_of(house)


async def test_every_range_comes_as_from_the_file(still: House) -> None:
    store = await fill(still)
    elsewhere = fed(store, still.url, TOKEN)
    head = store.snapshot().head
    assert head > 60
    for kind in KINDS:
        for after, up_to in ((0, head), (7, 23), (head, head)):
            here = rows(store, kind, after, up_to)
            there = await asyncio.to_thread(rows, elsewhere, kind, after, up_to)
            assert there == here, (kind, after, up_to)
    for seq in (0, 1, head, head + 1):
        assert await asyncio.to_thread(elsewhere.hash_of, seq) == store.hash_of(seq)


async def test_only_the_owner_is_fed_and_no_nonsense_is(still: House) -> None:
    store = await fill(still)
    stranger = fed(store, still.url, "somebody-elses-token-0123456789")
    with pytest.raises(FeedBroken, match="status 401"):
        await asyncio.to_thread(rows, stranger, "ledger", 0, 5)
    for path in (
        "nonsense?after=0&up_to=1",
        "ledger?after=-1&up_to=1",
        "ledger?after=x&up_to=1",
        "hash?seq=-1",
    ):
        assert (await still.http.get(f"/internal/feed/{path}")).status_code in (400, 422), path
    assert TOKEN not in repr(fed(store, still.url, TOKEN))
    with pytest.raises(InvalidField, match="must be an address like"):
        fed(store, "10.0.0.5:3777", TOKEN)


async def test_an_office_that_is_not_there_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(FeedBroken, match="did not come from"):
            rows(FedSource("gone.db", url=url, token=TOKEN), "ledger", 0, 5)


@pytest.mark.parametrize("whole", [True, False])
async def test_an_answer_that_breaks_off_is_an_error_and_not_a_shorter_answer(
    still: House, tmp_path: Path, whole: bool
) -> None:
    """Between two batches nothing in the rows themselves tells that more was to come."""
    store = await fill(still)
    [first, *_] = encode_range(store, "ledger", 0, 30)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                connection.sendall(head.encode() + f"{len(first):x}\r\n".encode() + first + b"\r\n")
                if whole:
                    connection.sendall(b"0\r\n\r\n")

        helper = threading.Thread(target=answer)
        helper.start()
        source = FedSource(store.path, url=f"http://127.0.0.1:{server.getsockname()[1]}", token=TOKEN)
        if whole:
            assert len(await asyncio.to_thread(rows, source, "ledger", 0, 30)) == 30
        else:
            with pytest.raises(FeedBroken):
                await asyncio.to_thread(rows, source, "ledger", 0, 30)
        helper.join(30)


def test_pieces_together_are_one_stream_of_arrow(tmp_path: Path) -> None:
    from postroom.runtime import open_sync

    path = tmp_path / "room.db"
    with open_sync(f"sqlite:///{path}", housekeeping=False) as room:
        room.create_queue("jobs")
    data = b"".join(encode_range(SqliteSource(str(path)), "ledger", 0, 100))
    assert pa.ipc.open_stream(data).read_all().num_rows > 0
