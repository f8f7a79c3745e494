"""A store that is reached over a network has several writers: none on an event loop, and what stood in
another's way is tried again, whole and once.

The store is the real one on a file, told to behave like such a store: its transactions wait for each other.
"""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from postroom import Room, SyncRoom
from postroom.errors import StoreFailed
from postroom.kernel.changes import KeysTaken
from postroom.kernel.ports import StoreCapabilities, StoreFault, Transaction
from postroom.runtime import commit
from postroom.runtime.core import RoomCore, RoomOptions
from postroom.stores.sqlite import SqliteStore
from tests.conformance.promises import check_promises


class Deadlock(Exception):
    """What a server says when two transactions wait for each other."""


class ServedStore(SqliteStore):
    """Its next commits can be made to fail, and it remembers on which threads it was used."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.capabilities = StoreCapabilities(writers=3, blocking=True)
        self.threads: set[int] = set()
        self.failing: list[Exception] = []
        self.commits = 0
        self.announced: list[dict[int, int]] = []

    def begin(self) -> Transaction:
        self.threads.add(threading.get_ident())
        return super().begin()

    def commit(self, tx: Transaction) -> None:
        if self.failing:
            raise self.failing.pop(0)
        super().commit(tx)
        self.commits += 1
        if tx.woken:
            self.announced.append(dict(tx.woken))

    def classify(self, error: Exception) -> tuple[StoreFault, Exception]:
        if isinstance(error, Deadlock):
            return StoreFault.RETRY, StoreFailed(path="server", reason="deadlock")
        return super().classify(error)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServedStore:
    monkeypatch.setattr(commit, "PAUSES_S", (0.0, 0.0, 0.0))
    return ServedStore(tmp_path / "room.db")


@pytest.fixture
def core(store: ServedStore) -> Iterator[RoomCore]:
    core = RoomCore(store, RoomOptions(actor="tester", housekeeping=False))
    yield core
    core.close()


@pytest.fixture
def room(core: RoomCore) -> SyncRoom:
    room = SyncRoom(core)
    room.create_scope("default", exist_ok=True)
    room.create_queue("jobs")
    return room


async def test_an_event_loop_never_waits_for_the_store(core: RoomCore, store: ServedStore) -> None:
    room = Room(core)
    await room.create_scope("default", exist_ok=True)
    await room.create_queue("jobs")
    await asyncio.gather(*(room.publish("jobs", n) for n in range(50)))
    while batch := await room.claim("jobs", limit=7):
        await asyncio.gather(*(room.complete(each) for each in batch))
    assert (await room.counts("jobs")).completed == 50
    assert threading.get_ident() not in store.threads
    check_promises(room)


async def test_several_transactions_are_in_flight_at_once(core: RoomCore, store: ServedStore) -> None:
    room = Room(core)
    await room.create_scope("default", exist_ok=True)
    await room.create_queue("jobs")
    store.threads.clear()
    together, arrived = threading.Barrier(3), threading.Semaphore(0)
    plain = store.begin

    def begin() -> Transaction:
        arrived.release()
        together.wait(60)  # only three at once get past it
        return plain()

    store.begin = begin
    tasks = []
    for n in range(3):
        tasks.append(asyncio.ensure_future(room.publish("jobs", n)))
        await asyncio.to_thread(arrived.acquire)  # what comes before that would join it
    await asyncio.gather(*tasks)
    store.begin = plain
    assert (await room.counts("jobs")).pending == 3


@pytest.mark.parametrize("error", [Deadlock(), KeysTaken()], ids=["a deadlock", "a key that is taken"])
def test_what_stood_in_anothers_way_is_tried_again_and_happens_once(
    room: SyncRoom, store: ServedStore, error: Exception
) -> None:
    store.failing = [error, error]
    receipt = room.publish("jobs", {"n": 1}, key="once")
    assert receipt.created
    assert store.failing == []
    assert [each.id for each in room.messages(queue="jobs").messages] == [receipt.id]
    assert room.counts("jobs").pending == 1
    check_promises(room)


def test_what_does_not_cease_is_told_by_its_name(room: SyncRoom, store: ServedStore) -> None:
    store.failing = [Deadlock() for _ in range(4)]
    with pytest.raises(StoreFailed, match="deadlock"):
        room.publish("jobs", 1)
    assert store.failing == []
    assert room.counts("jobs").pending == 0


def test_an_error_that_a_retry_does_not_help_is_not_tried_again(room: SyncRoom, store: ServedStore) -> None:
    store.failing = [ZeroDivisionError(), ZeroDivisionError()]
    with pytest.raises(ZeroDivisionError):
        room.publish("jobs", 1)
    assert len(store.failing) == 1


def test_the_commit_knows_which_lines_to_tell_others_of(room: SyncRoom, store: ServedStore) -> None:
    room.publish_many("jobs", [1, 2, 3])
    queue = room.queue("jobs")
    assert store.announced[-1] == {queue.id: 3}


def test_lines_that_other_processes_filled_wake_who_waits(core: RoomCore) -> None:
    from postroom.runtime.wakeups import Waiter

    woken: list[Any] = []
    core.wakeups.join(Waiter([7], lambda: woken.append("line")))
    core.wakeups.follow(lambda: woken.append("ledger"))
    core._hear({7: 1})
    assert woken == ["line", "ledger"]
