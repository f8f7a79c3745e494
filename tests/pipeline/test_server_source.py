"""A store on a server gives the pipeline what the same store in a file gives it, row by row."""

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psycopg
import pyarrow as pa
import pytest

import postroom
from postroom.errors import PostroomError
from postroom.kernel import commands as c
from postroom.pipeline.sources import server
from postroom.pipeline.sources.server import ServerSource
from postroom.pipeline.sources.sqlite import SqliteSource, Wanted, open_source
from postroom.runtime.store_move import move_store
from tests.conftest import mariadb_url, postgres_url
from tests.stores.transfer.test_moving import fill, silent

SERVERS: dict[str, Callable[[Path], str]] = {"postgres": postgres_url, "mariadb": mariadb_url}


@pytest.fixture(params=SERVERS)
def sources(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[SqliteSource, ServerSource]:
    file, url = tmp_path / "room.db", SERVERS[request.param](tmp_path)
    with postroom.open_sync(str(file), housekeeping=False) as room:
        fill(room)
        talk = room.publish("jobs", {"text": "Grüße, 100% \\ done"}, correlation_id="talk", sender="ann").id
        room.publish("jobs", "an answer", correlation_id=talk, causation_id=talk)
        room.run(c.AddRecord(kind="turn", key="a\x00b", data={"n": 1}))
        room.cancel(talk, reason="a\x00b")
        room.publish("jobs", "the last")
    move_store(f"sqlite:///{file}", url, silent)
    mix(url)
    source = open_source(url)
    assert isinstance(source, ServerSource)
    return open_source(str(file)), pickle.loads(pickle.dumps(source))


def mix(url: str) -> None:
    """Rows of a server lie in any order: here a change has put some behind the others."""
    if url.startswith("postgresql"):
        with psycopg.connect(url) as db:
            db.execute("UPDATE ledger SET actor = actor WHERE seq % 3 = 0")
            db.execute("UPDATE records SET kind = kind WHERE id % 3 = 0")


def table(batches: Iterator[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(list(batches)).combine_chunks()


def test_every_range_is_the_same(
    sources: tuple[SqliteSource, ServerSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "ROWS_AT_ONCE", 7)
    file, moved = sources
    snapshot = file.snapshot()
    assert moved.snapshot() == snapshot
    assert snapshot.head > 50
    for way in ("ledger", "packed", "records", "ended", "rows"):
        one, other = (table(getattr(each, way)(0, snapshot.head)) for each in sources)
        assert one.num_rows, way
        if way in ("ended", "rows"):  # the archive's come last from a file
            one, other = one.sort_by("seq"), other.sort_by("seq")
        assert other.equals(one), way
    some = [Wanted("type", ("message.completed", "message.cancelled"))]
    one, other = (table(each.ledger(3, snapshot.head - 1, some)) for each in sources)
    assert other.equals(one)
    assert 0 < one.num_rows < 10


@pytest.mark.parametrize("kind", SERVERS)
def test_messages_that_were_published_on_the_server_are_numbered_too(kind: str, tmp_path: Path) -> None:
    url = SERVERS[kind](tmp_path)
    with postroom.open_sync(url, housekeeping=False) as room:
        room.create_queue("jobs")
        room.publish_many("jobs", range(3))
    source = open_source(url)
    last = source.snapshot().messages
    assert table(source.rows(0, last)).num_rows == 3


def test_what_the_driver_asks_is_answered_the_same(sources: tuple[SqliteSource, ServerSource]) -> None:
    file, moved = sources
    head = file.snapshot().head
    for seq in (0, 1, head, head + 1):
        assert moved.hash_of(seq) == file.hash_of(seq)
    [middle] = [row["time"] for row in table(file.ledger(head // 2, head // 2 + 1)).to_pylist()]
    for moment in (0, middle, middle + 1, 2**60):
        assert moved.seq_before(moment) == file.seq_before(moment)
        assert moved.record_before(moment) == file.record_before(moment)
    for words in (["answer"], ["grüße"], ["100%", "\\ DONE"], ["nobody said this"], []):
        expected = sorted(file.search(words, 100), key=lambda row: row["seq"])
        assert sorted(moved.search(words, 100), key=lambda row: row["seq"]) == expected
    [found] = file.search(["answer"], 10)
    assert moved.conversation_of(found["id"]) == file.conversation_of(found["id"])
    assert moved.conversation_of("nothing") is None
    talk = found["correlation_id"]
    assert moved.tenants_of(talk) == file.tenants_of(talk) == ["default"]
    assert moved.conversation(talk, "default") == file.conversation(talk, "default")
    assert [row["sender"] for row in moved.search(["100%"], 1, sender="ann")] == ["ann"]


def test_a_password_is_shown_to_nobody_and_a_server_that_is_away_is_named() -> None:
    for address in ("postgresql://me:secret@127.0.0.1:9/none", "mariadb://me:secret@127.0.0.1:9/none"):
        source = open_source(address)
        assert "secret" not in f"{source!r} {source.path}"
        assert b"secret" in msgspec.json.encode(source)
        with pytest.raises(PostroomError, match=r"127\.0\.0\.1") as refused:
            source.snapshot()
        assert "secret" not in str(refused.value)
