"""What the writer remembers of claimed messages is what the file has, whatever happens to them meanwhile."""

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import postroom
from postroom import Message, PostroomError, SyncRoom
from postroom.clock import ManualClock
from postroom.kernel import commands as c
from postroom.kernel.ports import Shape, Transaction
from postroom.stores.sqlite import SqliteStore, transaction
from postroom.stores.sqlite.connection import ReadConnection
from postroom.stores.sqlite.transaction import SqliteReads

DEEDS: dict[str, Callable[[SyncRoom, Message], object]] = {
    "extend": lambda room, held: room.extend(held, 90),
    "complete": lambda room, held: room.complete(held, {"done": True}),
    "fail": lambda room, held: room.fail(held, "no luck"),
    "fail for good": lambda room, held: room.fail(held, "no luck", retry=False),
    "release": lambda room, held: room.release(held),
    "snooze": lambda room, held: room.snooze(held, 5),
    "cancel": lambda room, held: room.cancel(held.id),
    "kill": lambda room, held: room.kill(held.id, "no longer wanted"),
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def room(tmp_path: Path, clock: ManualClock) -> Iterator[SyncRoom]:
    url = f"sqlite:///{tmp_path / 'room.db'}"
    with postroom.open_sync(url, clock=clock, housekeeping=False, seed=1) as room:
        room.create_queue("jobs", max_retries=3)
        yield room


def _store(room: SyncRoom) -> SqliteStore:
    store = room._core.store
    assert isinstance(store, SqliteStore)
    return store


def _remembered(room: SyncRoom) -> set[str]:
    """Their ids, all of them compared with the file."""
    store = _store(room)
    assert store._memory is not None
    known = store._memory.claimed
    filed = {row.id: row for row in SqliteReads(ReadConnection(store._db)).rows(list(known))}
    assert filed == known
    return set(known)


def _claim_one(room: SyncRoom) -> Message:
    room.publish("jobs", "work")
    [held] = room.claim("jobs")
    assert held.id in _remembered(room)
    return held


@pytest.mark.parametrize("deed", DEEDS)
def test_what_has_changed_is_not_remembered_as_it_was(room: SyncRoom, deed: str) -> None:
    held = _claim_one(room)
    DEEDS[deed](room, held)
    assert held.id not in _remembered(room) or room.get(held.id).state == postroom.State.CLAIMED


def test_a_lease_that_ran_out_is_not_remembered(room: SyncRoom, clock: ManualClock) -> None:
    held = _claim_one(room)
    clock.advance(3600)
    [again] = room.claim("jobs", worker="another")
    assert again.id == held.id
    assert _remembered(room) == {held.id}
    with pytest.raises(postroom.ClaimLost):
        room.complete(held)
    room.complete(again)
    assert room.get(held.id).state == postroom.State.COMPLETED


def test_a_refused_completion_leaves_what_is_remembered_as_it_was(room: SyncRoom) -> None:
    held = _claim_one(room)
    with pytest.raises(postroom.ClaimLost):
        room.run(c.Complete(message_id=held.id, token="another", actor=room.actor))
    _remembered(room)
    room.complete(held)
    assert room.get(held.id).state == postroom.State.COMPLETED


def test_a_completion_that_was_taken_back_can_be_repeated(room: SyncRoom) -> None:
    held = _claim_one(room)
    completing = c.Complete(message_id=held.id, token=held.claim_token or "", actor=room.actor)
    refused = c.Publish(queue="nowhere", messages=[postroom.NewMessage(body=1)])
    with pytest.raises(postroom.QueueNotFound):
        room.run(c.Unit(commands=(completing, refused)))
    assert room.get(held.id).state == postroom.State.CLAIMED
    _remembered(room)
    room.complete(held)
    assert room.get(held.id).state == postroom.State.COMPLETED


def test_whoever_has_claimed_still_has_what_was_claimed_when_others_end_it(room: SyncRoom) -> None:
    receipt = room.publish("jobs", "work")
    batch = room.run(c.Claim(queues=("default/jobs",), actor=room.actor))
    room.cancel(receipt.id)
    assert [each.row.state for each in batch.messages] == ["claimed"]


def test_a_claim_that_was_not_committed_is_not_remembered(room: SyncRoom) -> None:
    receipt = room.publish("jobs", "work")
    store = _store(room)
    with contextlib.ExitStack() as undone:
        tx = store.begin()
        undone.callback(store.rollback, tx)
        _claim_in(tx, receipt.id)
    [held] = room.claim("jobs")
    assert held.claim_token != "1-lost"
    assert _remembered(room) == {held.id}


def test_a_claim_within_a_savepoint_that_was_undone_is_not_remembered(room: SyncRoom) -> None:
    receipt = room.publish("jobs", "work")
    store = _store(room)
    with contextlib.ExitStack() as ended:
        tx = store.begin()
        ended.callback(store.commit, tx)
        with contextlib.suppress(KeyError), tx.savepoint():
            _claim_in(tx, receipt.id)
            # Asked, so that it is sent and has to be undone in the file.
            assert [each.row.state for each in tx.stored([receipt.id])] == ["claimed"]
            raise KeyError
    assert _remembered(room) == set()
    assert room.get(receipt.id).state == postroom.State.PENDING


def _claim_in(tx: Transaction, message_id: str) -> None:
    [row] = tx.rows([message_id])
    row.state, row.token, row.claimed_at = "claimed", "1-lost", tx.now
    tx.update([row], Shape.CLAIMED)


def test_only_so_many_are_remembered(room: SyncRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "MOST_CLAIMED", 3)
    room.publish_many("jobs", list(range(8)))
    claimed = [*room.claim("jobs", limit=5), *room.claim("jobs", limit=2)]
    assert _remembered(room) == {each.id for each in claimed[-3:]}
    for each in claimed:
        room.complete(each)
    assert room.counts("jobs").completed == 7


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_to_them(room: SyncRoom, clock: ManualClock, seed: int) -> None:
    rng = random.Random(seed)
    held: list[Message] = []
    done = 0
    for _ in range(150):
        step = rng.choice(("publish", "claim", "claim", "wait", *DEEDS))
        if step == "publish":
            room.publish_many("jobs", list(range(rng.randint(1, 4))))
        elif step == "claim":
            held += room.claim("jobs", limit=rng.randint(1, 3))
        elif step == "wait":
            clock.advance(rng.choice((1, 20, 400)))
        elif held:
            try:
                DEEDS[step](room, rng.choice(held))
                done += 1
            except PostroomError:
                pass
        _remembered(room)
    assert done >= 10
