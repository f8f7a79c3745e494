"""A room that an earlier version wrote opens, is brought up to date, verifies, and goes on as if nothing was.

`rooms/schema-6.db.gz` has something in every table: two scopes (one deleted), queues of every kind, a
rule that has moved a message, schemas, subscribers, archived messages, dead letters, budgets, documents
and a stream.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom import PostroomError, State, SyncRoom
from postroom.clock import ManualClock
from postroom.errors import SchemaViolation
from postroom.kernel import commands as c
from postroom.kernel.ports import AuditFilter
from postroom.stores.sqlite import SqliteStore
from tests.conformance.promises import check_promises

ROOM = Path(__file__).parent / "rooms" / "schema-6.db.gz"
NOW = 1_800_004_000 * 1_000_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def room(tmp_path: Path, clock: ManualClock) -> Iterator[SyncRoom]:
    path = tmp_path / "room.db"
    path.write_bytes(gzip.decompress(ROOM.read_bytes()))
    with postroom.open_sync(str(path), clock=clock, housekeeping=False, actor="tester") as room:
        yield room
        check_promises(room)


def test_it_is_copied_aside_before_it_is_changed(room: SyncRoom) -> None:
    store = room._core.store
    assert isinstance(store, SqliteStore)
    assert store.backup_made is not None
    assert store.backup_made.stat().st_size > 100_000


def test_its_ledger_verifies_and_folds_to_its_messages(room: SyncRoom) -> None:
    assert room.head().seq == 79
    check_promises(room)


def test_messages_go_on_from_where_they_were(room: SyncRoom, clock: ManualClock) -> None:
    assert room.counts("shop/orders").claimed == 1
    assert room.counts("shop/_dead_letter").dead == 1
    [revived] = room.replay(scope="shop")
    assert room.get(revived).state is State.PENDING
    clock.advance(8000)
    waiting = room.claim("shop/orders", limit=None)
    assert {message.body["n"] for message in waiting} == {0, 1, 2, 3, 4, 5} - {_completed(room)}
    for message in waiting:
        room.complete(message)
    assert room.counts("shop/orders").open == 0
    [delivery] = room.claim("shop/news", subscription="bob")
    room.complete(delivery)
    assert delivery.parent_id is not None
    assert room.get(delivery.parent_id).state is State.COMPLETED


def _completed(room: SyncRoom) -> int:
    [done] = room.messages(queue="shop/orders", state="completed").messages
    return done.body["n"]


def test_keys_are_still_known_also_of_what_a_rule_has_moved(room: SyncRoom) -> None:
    moved = room.publish("shop/orders", {"n": 500}, key="moved")
    assert not moved.created
    assert room.get(moved.id).path == "shop/bulk"
    assert not room.publish("shop/orders", {"n": 3}, key="k3").created
    assert room.get(room.publish("shop/orders", {"n": 900}).id).path == "shop/bulk", "the rule still acts"


def test_what_the_room_itself_remembers_is_still_known(room: SyncRoom, clock: ManualClock) -> None:
    [position] = room.positions()
    assert (position.name, position.seq, position.hold) == ("reader", 5, True)
    assert room.check_seen("shop/news", "ann", "seen before")
    assert not room.check_seen("shop/news", "ann", "never seen")
    assert [schema.version for schema in room.schemas("shop")] == [1, 2]
    with pytest.raises(SchemaViolation):
        room.publish("shop/strict", {})
    runs = {status.name: status.runs for status in room.housekeepers()}
    assert runs["pruner"] == 1
    assert room._core.read(lambda reader: reader.leader("housekeeping", clock.now())) is None
    before = room.head().seq
    room.housekeep("dead_letter_monitor")
    grown = [event for event in room.events(before) if event.type == "dead_letters.grew"]
    assert not grown, "how many dead letters there were is remembered"


def test_documents_records_budgets_audit_and_streams_are_there(room: SyncRoom) -> None:
    task = room.document("task", "t1")
    assert task is not None
    assert task.data == {"title": "one"}
    assert room.document("task", "t2") is None
    assert room.document_changes("task") == 3
    latest = room.latest_record("turn", "coder")
    assert latest is not None
    assert latest.data == {"cost": 2}
    budgets = room.accounts("day", "talk")
    assert (budgets["day"].spent, budgets["talk"].frozen) == (7, "too long")
    assert not room.run(c.Settle(holder="h0", charges=())), "it was settled before"
    assert room._core.read(lambda reader: reader.audit(AuditFilter(tenant="default"), None, 9))[0].id == "a1"
    chunks = room._core.read(lambda reader: reader.chunks("s1", -1, 9))
    assert b"".join(chunk.data for chunk in chunks) == b"abcd"


def test_deleted_queues_and_scopes_stay_deleted(room: SyncRoom) -> None:
    assert [scope.slug for scope in room.scopes()] == ["default", "shop"]
    with pytest.raises(PostroomError):
        room.queue("shop/gone")
    found = {message.path for message in room.messages().messages if message.archived}
    assert found == {"shop/gone", "shop/orders", "closed/box"}
    room.create_scope("closed")
