"""A transaction leaves all or nothing, and nobody can change what is kept without saving it."""

import contextlib
from dataclasses import dataclass
from typing import Any

import pytest
from tests.stores.memory.room import Room, everything

from postroom.errors import NotFound, StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.housekeeping import housekeepers
from postroom.kernel.ledger import EventDraft
from postroom.kernel.model import NewMessage
from postroom.stores.memory import MemoryStore

HOUR = 3600


def draft(time: int, kind: str = "test.happened", actor: str = "me") -> EventDraft:
    return EventDraft(time, kind, "default", None, None, None, None, None, actor, "{}")


@dataclass
class Furnished:
    """A room in which something of every kind has happened."""

    room: Room
    work: int
    claimed: c.ClaimCommand


@pytest.fixture
def furnished(room: Room) -> Furnished:
    work = room.queue("work", max_retries=1, retention_s=1)
    room.queue("urgent", ordering="priority")
    room.queue("news", consumer_mode="broadcast")
    room.queue("old")
    room.do(c.Subscribe(queue="s/news", name="ann"))
    room.do(c.CheckSeen(queue="s/news", name="ann", key="1"))
    room.do(c.CreateScope(slug="spare"))
    for slug in ("s", "spare"):
        room.do(c.RegisterSchema(scope=slug, name="order", document={"type": "object"}))
    room.do(c.AddRecord(kind="turn", key="a", data={"cost": 1}))
    room.do(c.SetPosition(name="lake", seq=3))
    room.publish("work", "archived", idempotency_key="key 0")
    room.publish("old", "ended")
    room.complete(*room.claim("work"), *room.claim("old"))
    room.clock.advance(2 * HOUR)
    room.do(c.Housekeep(name=housekeepers.ARCHIVER))
    room.publish("work", "dead", idempotency_key="key 1")
    (dying,) = room.claim("work")
    room.do(c.Fail(message_id=dying.row.id, token=dying.row.token or "", reason="broken"))
    room.publish("old", "ended")
    room.complete(*room.claim("old"))
    room.publish("work", "claimed", "pending", idempotency_key=None)
    room.publish("work", "delayed", delay_until=room.clock.now() + 10)
    room.publish("urgent", "waiting", ttl_s=HOUR)
    room.publish("news", "for ann")
    (claimed,) = room.claim("work")
    held = c.ClaimCommand(message_id=claimed.row.id, token=claimed.row.token or "")
    return Furnished(room, work, held)


def many_changes(furnished: Furnished) -> list[c.Command]:
    held: dict[str, Any] = {"message_id": furnished.claimed.message_id, "token": furnished.claimed.token}
    keyed = [NewMessage(body=n, idempotency_key=f"key {n}") for n in range(2, 6)]
    return [
        c.CreateScope(slug="other"),
        c.DeleteScope(slug="spare"),
        c.CreateQueue(queue="s/new"),
        c.UpdateScope(slug="s", description="changed"),
        c.UpdateQueue(queue="s/work", settings={"ordering": "priority"}),
        c.Publish(queue="s/work", messages=keyed),
        c.Publish(queue="s/news", messages=[NewMessage(body="more")]),
        c.Complete(**held),
        c.Replay(scope="s"),
        c.DeleteQueue(queue="s/old"),
        c.Subscribe(queue="s/news", name="bob", earliest=True),
        c.CheckSeen(queue="s/news", name="ann", key="2"),
        c.CheckSeen(queue="s/news", name="bob", key="3"),
        c.Unsubscribe(queue="s/news", name="ann"),
        c.RegisterSchema(scope="s", name="order", document={}),
        c.AddRecord(kind="turn", key="b", data={}),
        c.SetPosition(name="lake", seq=9),
        c.Lead(name="x", holder="me", seconds=9),
        c.ReportRun(name="x", started_at=1, duration_us=1, items=1),
        *(c.Housekeep(name=housekeeper.name) for housekeeper in housekeepers.ROSTER),
        c.Claim(queues=("s/urgent", "s/work"), limit=10),
        c.Claim(queues=("s/news",), subscription="bob"),
    ]


class TestRollback:
    def test_it_leaves_everything_as_it_was(self, furnished: Furnished) -> None:
        room = furnished.room
        before = everything(room.store)
        tx = room.store.begin()
        assert tx.prune_seen(2**60, 1) == 1
        room.apply(tx, many_changes(furnished))
        assert tx.prune_ledger(2**60, None, 5) == 5
        assert tx.prune_seen(2**60, 1) == 1
        room.store.rollback(tx)
        assert everything(room.store) == before

    def test_numbers_are_given_again(self, furnished: Furnished) -> None:
        room = furnished.room
        numbers = []
        for _ in range(2):
            tx = room.store.begin()
            room.apply(tx, [c.CreateQueue(queue="s/new"), c.Subscribe(queue="s/news", name="new")])
            room.apply(tx, [c.Publish(queue="s/new", messages=[NewMessage()])])
            queue = tx.queue("default", "s", "new")
            assert queue is not None
            (stored,) = tx.pending(queue.id, 1)
            numbers.append((queue.id, tx.subscriptions(queue.id), stored.row.seq))
            room.store.rollback(tx)
        assert numbers[0] == numbers[1]

    def test_what_was_taken_back_can_come_again(self, room: Room) -> None:
        work = room.queue("work")
        room.publish("work", 1)
        for _ in range(2):
            tx = room.store.begin()
            (stored,) = tx.pending(work, 1)
            stored.row.id, stored.row.idempotency_key = "again", "key"
            tx.insert([stored.row], [stored.content])
            room.store.rollback(tx)
        assert len(room.page()) == 1

    def test_it_is_possible_after_a_commit_that_failed(self, furnished: Furnished) -> None:
        store = furnished.room.store
        before = everything(store)
        tx = store.begin()
        furnished.room.apply(tx, many_changes(furnished))
        tx.append(draft(2**60, actor="\ud800"))
        with pytest.raises(UnicodeEncodeError):
            store.commit(tx)
        store.rollback(tx)
        assert everything(store) == before

    def test_of_a_transaction_that_has_ended_it_does_nothing(self, room: Room) -> None:
        tx = room.store.begin()
        tx.set_memo("kept", "yes")
        room.store.commit(tx)
        room.store.rollback(tx)
        tx = room.store.begin()
        assert tx.memo("kept") == "yes"
        room.store.rollback(tx)

    def test_a_transaction_commits_once(self, room: Room) -> None:
        tx = room.store.begin()
        room.store.commit(tx)
        with pytest.raises(RuntimeError):
            room.store.commit(tx)


class TestSavepoint:
    def test_it_undoes_everything_inside_and_nothing_before(self, furnished: Furnished) -> None:
        room = furnished.room
        before = everything(room.store)
        tx = room.store.begin()
        tx.append(draft(tx.last_time(), "test.outside"))
        with contextlib.suppress(ZeroDivisionError), tx.savepoint():
            room.apply(tx, many_changes(furnished))
            tx.prune_ledger(2**60, None, 5)
            raise ZeroDivisionError
        room.store.commit(tx)
        after = everything(room.store)
        (added,) = after["events"][len(before["events"]) :]
        assert added.type == "test.outside"
        for what in before.keys() - {"events", "head"}:
            assert after[what] == before[what], what

    def test_it_lets_the_error_through(self, room: Room) -> None:
        tx = room.store.begin()
        with pytest.raises(ZeroDivisionError), tx.savepoint():
            raise ZeroDivisionError
        room.store.rollback(tx)

    def test_one_within_another_undoes_only_its_own(self, room: Room) -> None:
        tx = room.store.begin()
        with tx.savepoint():
            tx.set_memo("outer", "kept")
            tx.append(draft(1, "test.outer"))
            with contextlib.suppress(ZeroDivisionError), tx.savepoint():
                tx.set_memo("inner", "gone")
                tx.set_memo("outer", "changed")
                tx.append(draft(1, "test.inner"))
                raise ZeroDivisionError
        assert (tx.memo("outer"), tx.memo("inner")) == ("kept", None)
        room.store.commit(tx)
        with room.store.reader() as reader:
            assert reader.events(0, 100)[-1].type == "test.outer"

    def test_a_refused_unit_leaves_its_neighbours_in_the_group(self, room: Room) -> None:
        room.queue("work")
        published = c.Publish(queue="s/work", messages=[NewMessage(body="inside", idempotency_key="k")])
        refused = c.Unit(commands=(published, c.Cancel(message_id="nobody")))
        outcomes = room.together(
            [
                c.Publish(queue="s/work", messages=[NewMessage(body="before")]),
                refused,
                c.Publish(queue="s/work", messages=[NewMessage(body="after")]),
            ]
        )
        assert isinstance(outcomes[1].error, NotFound)
        assert room.bodies() == [b'"before"', b'"after"']
        assert [stored.row.seq for stored in room.page()] == [1, 2]
        with room.store.reader() as reader:
            queue = reader.queue("default", "s", "work")
            assert queue is not None
            assert reader.counts(queue.id).pending == 2
            assert len([e for e in reader.events(0, 100) if e.type == "message.published"]) == 2


class TestOwnWrites:
    def test_a_transaction_sees_them_before_the_commit(self, furnished: Furnished) -> None:
        room = furnished.room
        tx = room.store.begin()
        known = tx.pending(furnished.work, 10)
        room.apply(tx, [c.Publish(queue="s/work", messages=[NewMessage(body=1, idempotency_key="k")])])
        stored = tx.by_key(furnished.work, "k")
        assert stored is not None
        assert tx.pending(furnished.work, 10) == [*known, stored]
        assert tx.row(stored.row.id) == stored.row
        assert tx.content(stored.row) == stored.content
        room.store.rollback(tx)

    def test_time_does_not_go_back_behind_an_event_not_yet_committed(self, room: Room) -> None:
        tx = room.store.begin()
        tx.append(draft(2**60))
        assert tx.last_time() == 2**60
        room.store.rollback(tx)


class TestCopies:
    def test_what_a_transaction_hands_out_can_be_changed_without_effect(self, furnished: Furnished) -> None:
        store, before = furnished.room.store, everything(furnished.room.store)
        seen = everything(store)
        for stored in [*seen["messages"], *(s for line in seen["pending"] for s in line)]:
            stored.row.state, stored.row.attempts = "spoilt", 99
            stored.content.body = b"spoilt"
        for row in [*seen["due"], *seen["finished"], *seen["dead"], *seen["aging"]]:
            row.state = "spoilt"
        for stored in [s for s in seen["keys"] if s is not None]:
            stored.row.state, stored.content.body = "spoilt", b"spoilt"
        seen["schemas"][0][0].document["type"] = "spoilt"
        seen["records"][0].data["cost"] = "spoilt"
        seen["queue names"].clear()
        assert everything(store) == before

    def test_what_was_inserted_or_saved_can_be_changed_afterwards_without_effect(self, room: Room) -> None:
        work = room.queue("work")
        room.publish("work", 1)
        tx = room.store.begin()
        (stored,) = tx.pending(work, 1)
        stored.row.failure_reason = "saved"
        tx.save([stored.row])
        stored.row.failure_reason = "not saved"
        other, content = tx.pending(work, 1)[0].row, stored.content
        other.id = "another"
        tx.insert([other], [content])
        other.failure_reason, content.body = "not saved", b"not saved"
        room.store.commit(tx)
        assert [s.row.failure_reason for s in room.page()] == ["saved", "saved"]
        assert room.bodies() == [b"1", b"1"]

    def test_saving_leaves_a_message_in_its_queue_and_relocating_moves_it(self, room: Room) -> None:
        here, there = room.queue("here"), room.queue("there")
        room.publish("here", 1)
        tx = room.store.begin()
        row = tx.pending(here, 1)[0].row
        row.queue_id = row.line = there
        tx.save([row])
        assert (len(tx.pending(here, 9)), len(tx.pending(there, 9))) == (1, 0)
        tx.relocate([row])
        row.state = "not saved"
        assert (len(tx.pending(here, 9)), len(tx.pending(there, 9))) == (0, 1)
        assert tx.pending(there, 1)[0].row.state == "pending"
        room.store.rollback(tx)


class TestUniqueness:
    def test_an_id_or_key_is_not_taken_twice(self, room: Room) -> None:
        work = room.queue("work")
        room.publish("work", 1, idempotency_key="k")
        tx = room.store.begin()
        (stored,) = tx.pending(work, 1)
        with pytest.raises(ValueError, match="already"):
            tx.insert([stored.row], [stored.content])
        stored.row.id = "another"
        with pytest.raises(ValueError, match="key"):
            tx.insert([stored.row], [stored.content])
        room.store.rollback(tx)


def test_a_closed_store_refuses_readers_and_writers() -> None:
    store = MemoryStore()
    store.close()
    with pytest.raises(StoreClosed):
        store.begin()
    with pytest.raises(StoreClosed), store.reader():
        pass
