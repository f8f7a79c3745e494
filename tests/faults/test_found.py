"""What the random walks and the reading of the code found, each by itself and repeatable."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.errors import StoreClosed
from postroom.kernel.model import NewMessage
from postroom.stores.sqlite import SqliteStore


@pytest.fixture
def room() -> Iterator[postroom.SyncRoom]:
    with postroom.open_sync("memory://", housekeeping=False) as room:
        yield room


def test_every_receipt_of_a_key_sent_twice_at_once_tells_the_state_the_message_has(
    room: postroom.SyncRoom,
) -> None:
    room.create_queue("news", consumer_mode="broadcast")
    twice = [NewMessage(body=1, idempotency_key="k"), NewMessage(body=1, idempotency_key="k")]
    receipts = room.publish_many("news", twice)
    state = room.get(receipts[0].id).state
    assert [receipt.state for receipt in receipts] == [state, state]


def test_the_receipt_of_a_known_key_tells_that_this_call_dropped_the_message(room: postroom.SyncRoom) -> None:
    room.create_queue("small", max_depth=1, overflow_policy="drop_oldest")
    room.publish("small", 1, key="k")
    again = [NewMessage(body=1, idempotency_key="k"), NewMessage(body=2)]
    receipts = room.publish_many("small", again)
    assert receipts[0].state == room.get(receipts[0].id).state == "dead"


def test_a_replayed_broadcast_reaches_each_subscriber_once(room: postroom.SyncRoom) -> None:
    """One subscriber gave up, then the broadcast was killed: both are dead letters of the same message."""
    room.create_queue("news", consumer_mode="broadcast")
    room.subscribe("news", "anna")
    room.subscribe("news", "ben")
    sent = room.publish("news", "x")
    [delivery] = room.claim("news", subscription="anna")
    room.fail(delivery, "no", retry=False)
    room.kill(sent.id, "no")
    room.replay(scope="default")
    assert len(room.claim("news", subscription="ben", limit=None)) == 1
    assert len(room.claim("news", subscription="anna", limit=None)) == 1


def test_replays_of_a_broadcast_and_of_its_delivery_reach_the_subscriber_once(
    room: postroom.SyncRoom,
) -> None:
    """As above, but the dead letters come back one at a time."""
    room.create_queue("news", consumer_mode="broadcast")
    room.subscribe("news", "anna")
    room.subscribe("news", "ben")
    sent = room.publish("news", "x")
    [delivery] = room.claim("news", subscription="anna")
    room.fail(delivery, "no", retry=False)
    room.kill(sent.id, "no")
    room.replay(scope="default", limit=1)
    room.replay(scope="default", limit=1)
    assert len(room.claim("news", subscription="anna", limit=None)) == 1


def test_dead_letters_without_a_subscriber_do_not_keep_others_from_being_replayed(
    room: postroom.SyncRoom,
) -> None:
    room.create_queue("jobs")
    room.create_queue("news", consumer_mode="broadcast")
    room.subscribe("news", "anna")
    room.publish("news", "x")
    [delivery] = room.claim("news", subscription="anna")
    room.fail(delivery, "no", retry=False)
    room.unsubscribe("news", "anna")
    job = room.publish("jobs", "y")
    [claimed] = room.claim("jobs")
    room.fail(claimed, "no", retry=False)
    assert room.replay(scope="default", limit=1) == [job.id]


def test_a_reader_who_comes_while_the_store_closes_is_refused_and_not_kept_waiting(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "room.db")
    arrived, closed = threading.Event(), threading.Event()
    get = store._readers.get
    refused: list[bool] = []

    def late(*args: object, **options: object) -> object:
        """Between the look at the door and the taking of a connection, the store is closed."""
        if threading.current_thread() is reader:
            arrived.set()
            closed.wait(10)
        return get(*args, **options)  # type: ignore[arg-type]

    def read() -> None:
        try:
            with store.reader():
                pass
        except StoreClosed:
            refused.append(True)

    store._readers.get = late  # type: ignore[method-assign]
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    assert arrived.wait(10)
    store.close()
    closed.set()
    reader.join(5)
    assert not reader.is_alive()
    assert refused == [True]
