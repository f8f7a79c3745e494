"""Readers never see a transaction half done, whichever threads read, begin and commit."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning

import pytest
from tests.stores.memory.room import MANY, Room

from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage

SOON = 0.05
LATE = 120


def in_thread(work: Callable[[], object]) -> Future[object]:
    with_one = ThreadPoolExecutor(1)
    future = with_one.submit(work)
    with_one.shutdown(wait=False)
    return future


def still_waits(future: Future[object]) -> bool:
    try:
        future.result(SOON)
    except StillRunning:
        return True
    return False


def test_a_reader_waits_for_the_commit_and_then_sees_all_of_it(room: Room) -> None:
    room.queue("work")
    tx = room.store.begin()
    room.apply(tx, [c.Publish(queue="s/work", messages=[NewMessage(), NewMessage()])])
    reading = in_thread(lambda: len(room.page()))
    assert still_waits(reading)
    room.store.commit(tx)
    assert reading.result(LATE) == 2


def test_a_reader_waits_for_the_rollback_and_then_sees_none_of_it(room: Room) -> None:
    room.queue("work")
    tx = room.store.begin()
    room.apply(tx, [c.Publish(queue="s/work", messages=[NewMessage(), NewMessage()])])
    reading = in_thread(lambda: len(room.page()))
    assert still_waits(reading)
    room.store.rollback(tx)
    assert reading.result(LATE) == 0


def test_a_writer_waits_until_a_reader_has_finished(room: Room) -> None:
    with room.store.reader() as reader:
        head = reader.head()
        writing = in_thread(lambda: room.queue("work"))
        assert still_waits(writing)
        assert reader.head() == head
    writing.result(LATE)


def test_another_thread_may_commit(room: Room) -> None:
    tx = room.store.begin()
    tx.set_memo("kept", "yes")
    in_thread(lambda: room.store.commit(tx)).result(LATE)
    tx = room.store.begin()
    assert tx.memo("kept") == "yes"
    in_thread(lambda: room.store.rollback(tx)).result(LATE)
    with room.store.reader():
        pass


@pytest.mark.timeout(LATE)
def test_a_thread_may_read_within_a_read_and_write_within_its_own_read(room: Room) -> None:
    with room.store.reader() as outer, room.store.reader() as inner:
        assert outer.head() == inner.head()
        room.queue("work")
        assert inner.queue("default", "s", "work") is not None
    in_thread(lambda: room.queue("more")).result(LATE)


def test_readers_see_whole_commits_while_others_write(room: Room) -> None:
    work = room.queue("work")
    done = threading.Event()
    torn: list[tuple[int, int]] = []

    def read() -> None:
        while not done.is_set():
            with room.store.reader() as reader:
                counted, listed = reader.counts(work).pending, len(reader.peek(work, MANY))
            if counted != listed or counted % 5:
                torn.append((counted, listed))

    readers = [in_thread(read) for _ in range(2)]
    try:
        for _ in range(100):
            room.publish("work", *range(5))
    finally:
        done.set()
    for reading in readers:
        reading.result(LATE)
    assert torn == []
    assert len(room.page()) == 500
