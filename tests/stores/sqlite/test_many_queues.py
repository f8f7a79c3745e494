"""What a room costs does not grow with the scopes, queues and tenants it has.

Counted are the statements and the steps SQLite's machine takes in them, never time.
"""

from collections.abc import Callable, Iterator
from typing import Any

import apsw
import msgspec
import pytest

import postroom
from postroom import SyncRoom
from postroom.kernel import commands as c
from postroom.kernel.housekeeping.housekeepers import ROSTER
from postroom.kernel.ports import QueueFilter
from postroom.stores.sqlite import SqliteStore

FEW, MANY = 300, 10_000
PER_SCOPE = 20
PER_TENANT = 5
"""Scopes."""


class Cost(msgspec.Struct, frozen=True):
    statements: int
    steps: int


class Meter:
    """Everything the writer's connection is asked; in memory that is all there is."""

    def __init__(self, room: SyncRoom) -> None:
        store = room._core.store
        assert isinstance(store, SqliteStore)
        self._db = store._db

    def measure(self, work: Callable[[], Any]) -> Cost:
        seen: list[int] = []
        self._db.trace_v2(
            apsw.SQLITE_TRACE_PROFILE,
            lambda event: seen.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]),
        )
        try:
            work()
        finally:
            self._db.trace_v2(0, None)
        return Cost(len(seen), sum(seen))


def fill(room: SyncRoom, queues: int) -> None:
    """Every tenth queue orders by priority; each scope has its dead letters besides."""
    for first in range(0, queues, PER_SCOPE):
        scope = first // PER_SCOPE
        who: dict[str, Any] = {"tenant": f"tenant-{scope // PER_TENANT}", "actor": "tester"}
        made: list[c.Command] = [c.CreateScope(slug=f"scope-{scope}", **who)]
        for number in range(first, first + PER_SCOPE):
            settings = {"ordering": "priority"} if number % 10 == 0 else {}
            made.append(c.CreateQueue(queue=f"scope-{scope}/queue-{number}", settings=settings, **who))
        room.run(c.Unit(commands=tuple(made), **who))


@pytest.fixture(scope="module")
def rooms() -> Iterator[list[SyncRoom]]:
    with (
        postroom.open_sync("memory://", housekeeping=False) as small,
        postroom.open_sync("memory://", housekeeping=False) as large,
    ):
        for room, queues in ((small, FEW), (large, MANY)):
            fill(room, queues)
            room.create_queue("jobs", max_retries=0)
            room.create_queue("news", consumer_mode="broadcast")
            room.subscribe("news", "ann")
        yield [small, large]


def cycle(room: SyncRoom) -> None:
    room.publish_many("jobs", [1, 2, 3])
    done, failed, released = room.claim("jobs", limit=3)
    room.complete(done)
    room.fail(failed, "no", retry=False)
    room.release(released)
    room.complete(room.claim("jobs")[0])
    room.publish("news", 1)
    room.complete(room.claim("news", subscription="ann")[0])


def forget(room: SyncRoom) -> None:
    """As after a change of any queue: everything has to be looked up anew."""
    room.update_queue("jobs", max_retries=0)
    cycle(room)


WORK: dict[str, Callable[[SyncRoom], Any]] = {
    "the life of messages": cycle,
    "their life after queues have changed": forget,
    "one queue": lambda room: room.queue("jobs"),
    "counts": lambda room: room.counts("jobs"),
    "peeking": lambda room: room.peek("jobs"),
    "messages of a queue": lambda room: room.messages(queue="jobs", limit=10),
    "queues of a scope": lambda room: room.queues("default"),
    "queues of a tenant": lambda room: room.queues(),
    "scopes of a tenant": lambda room: room.scopes(),
    "dead letters": lambda room: room.messages(state="dead", limit=10),
    "subscribers": lambda room: room.subscriptions("news"),
    "a page of queues of all tenants": lambda room: room.look(
        lambda reader: reader.reads.queues(QueueFilter(sort="any", after=(0, 50)), 20)
    ),
    "a queue and back": lambda room: (room.create_queue("more"), room.delete_queue("more")),
}


@pytest.mark.parametrize("name", sorted(WORK))
def test_the_cost_of_a_request_is_the_same_with_ten_thousand_queues(rooms: list[SyncRoom], name: str) -> None:
    costs = []
    for room in rooms:
        WORK[name](room)
        costs.append(Meter(room).measure(lambda room=room: WORK[name](room)))
    few, many = costs
    assert few.steps > 0
    assert many.statements == few.statements
    assert many.steps <= few.steps * 1.2 + 50, costs


@pytest.mark.parametrize("name", [keeper.name for keeper in ROSTER])
def test_one_step_of_a_housekeeper_is_bounded_by_its_limit(rooms: list[SyncRoom], name: str) -> None:
    costs = []
    for room in rooms:
        step = c.Housekeep(name=name, limit=10, actor="tester")
        costs.append(Meter(room).measure(lambda room=room, step=step: room.run(step)))
    few, many = costs
    assert many.statements == few.statements
    assert many.steps <= few.steps * 1.2 + 50, costs
