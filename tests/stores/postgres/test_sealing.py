"""The end of the ledger and the counts change with every commit without a row that does, also beside
processes of the version before, which know only such rows."""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

import postroom
from postroom import SyncRoom
from postroom.errors import LedgerBroken
from postroom.kernel import jsontext
from postroom.stores.postgres import sealing, store
from tests.conformance.promises import check_promises
from tests.conftest import postgres_url
from tests.stores.postgres.older_version import bring_back
from tests.stores.servers.conftest import until

OLDER = "postroom room-0123456789ab"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return postgres_url(tmp_path)


@pytest.fixture
def rooms(url: str) -> Iterator[tuple[SyncRoom, SyncRoom]]:
    with ExitStack() as stack:
        first, second = (stack.enter_context(postroom.open_sync(url, housekeeping=False)) for _ in range(2))
        first.create_queue("jobs")
        yield first, second


def _ask(url: str, sql: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as db:
        return db.execute(sql.encode()).fetchall()


def _sealed_by(url: str) -> str:
    return str(_ask(url, "SELECT value FROM meta WHERE name = 'sealed_by'")[0][0])


def _append_as_before(url: str) -> None:
    """An event as the version before writes it, which locks and moves the row of the head."""
    where = "queue_id = 0 AND subscription_id = 0 AND name = 'head'"
    with psycopg.connect(url, application_name=OLDER) as db:
        [(seq, hash_, time)] = db.execute(
            f"SELECT n, hash, time FROM figures WHERE {where} FOR UPDATE".encode()
        )
        fields = (seq + 1, time, "test.told", "default", None, None, None, None, None, "older", "{}")
        link = hashlib.sha256(bytes(hash_) + jsontext.encode(fields)).digest()
        db.execute(
            "INSERT INTO ledger VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", (*fields, link)
        )
        db.execute(f"UPDATE figures SET n = n + 1, hash = %s WHERE {where}".encode(), (link,))


def test_no_row_changes_with_every_commit(
    rooms: tuple[SyncRoom, SyncRoom], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "FOLD_S", 3600.0)
    first, second = rooms
    first.publish("jobs", 0)
    second.publish("jobs", 0)
    where = "SELECT xmin::text, ctid::text, * FROM figures ORDER BY queue_id, subscription_id, name"
    before = _ask(url, where)
    for room in (first, second, first):
        room.publish("jobs", 1)
        room.complete(room.claim("jobs")[0])
    assert _ask(url, where) == before
    counts = first.counts("jobs")
    assert (counts.pending, counts.completed) == (2, 3)
    assert first.head() == second.head()
    check_promises(first)


def test_what_was_appended_is_added_up_once(
    rooms: tuple[SyncRoom, SyncRoom], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = rooms
    monkeypatch.setattr(store, "FOLD_S", 3600.0)
    for _ in range(3):
        first.publish("jobs", 1)
        second.publish("jobs", 2)
    assert _ask(url, "SELECT count(*) > 0 FROM count_changes") == [(True,)]
    first._core.store._fold_at = 0.0  # type: ignore[attr-defined]
    second.complete(second.claim("jobs")[0])
    first.publish("jobs", 3)
    assert _ask(url, "SELECT count(*) FROM count_changes") == [(0,)]
    for room in rooms:
        assert (room.counts("jobs").pending, room.counts("jobs").completed) == (6, 1)
    check_promises(first)


def test_events_that_are_missing_at_the_end_are_found(rooms: tuple[SyncRoom, SyncRoom], url: str) -> None:
    first, _ = rooms
    first._core.store._fold_at = 0.0  # type: ignore[attr-defined]
    first.publish("jobs", 1)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("DELETE FROM ledger WHERE seq = (SELECT max(seq) FROM ledger)")
    with pytest.raises(LedgerBroken, match="events were written"):
        check_promises(first)


def test_beside_the_version_before_both_see_each_others_events(url: str) -> None:
    with postroom.open_sync(url, housekeeping=False) as room:
        room.create_queue("jobs")
        room.publish("jobs", 1)
    bring_back(url)
    with postroom.open_sync(url, housekeeping=False) as room:
        assert _sealed_by(url) == "row"
        for n in range(3):
            room.publish("jobs", n)
            _append_as_before(url)
        room.complete(room.claim("jobs")[0])
        told = [event.type for event in room.events() if event.actor == "older"]
        assert told == ["test.told"] * 3
        check_promises(room)
        # What the version before reads.
        [(head,)] = _ask(url, "SELECT n FROM figures WHERE name = 'head' AND queue_id = 0")
        assert head == room.head().seq
        assert _ask(url, "SELECT count(*) FROM count_changes") == [(0,)]


def test_when_the_version_before_is_gone_its_way_is_left(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with postroom.open_sync(url, housekeeping=False) as room:
        room.create_queue("jobs")
    bring_back(url)
    monkeypatch.setattr(sealing, "UNSEEN_S", 0.0)
    monkeypatch.setattr(sealing, "LOOK_S", 0.0)
    watch = sealing.SealingWatch()
    with psycopg.connect(url, application_name=OLDER) as older, ExitStack() as stack:
        room = stack.enter_context(postroom.open_sync(url, housekeeping=False))
        looking = stack.enter_context(psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor))
        room.publish("jobs", 1)
        assert watch.look(looking) is False
        assert _sealed_by(url) == "row"
        older.close()
        until(lambda: watch.look(looking) or _sealed_by(url) == "ledger")
        assert watch.look(looking) is False
        room.publish("jobs", 2)
        assert room.counts("jobs").pending == 2
        check_promises(room)


def test_a_room_leaves_the_way_of_the_version_before_by_itself(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postroom.open_sync(url, housekeeping=False) as room:
        room.create_queue("jobs")
    bring_back(url)
    monkeypatch.setattr(sealing, "UNSEEN_S", 0.0)
    with postroom.open_sync(url, housekeeping=False) as room:
        room.publish("jobs", 1)
        until(lambda: _sealed_by(url) == "ledger")
        room.publish("jobs", 2)
        assert room.counts("jobs").pending == 2
