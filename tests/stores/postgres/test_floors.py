"""Where the living begin: beside a long query claims do not pass what is long done, and whatever becomes
claimable or due is found all the same, in its order."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postroom
from postroom import Message, NewMessage, SyncRoom
from postroom.clock import micros
from postroom.stores.postgres import floors
from postroom.stores.postgres.dialect import WRITE_SQL, translate
from postroom.stores.postgres.floors import LOWEST, UNORDERED, Floors
from postroom.stores.sql import due_memo
from postroom.stores.sql.due_memo import DueMemo
from tests.conformance.promises import check_promises
from tests.conftest import postgres_url

Rooms = tuple[SyncRoom, SyncRoom]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return postgres_url(tmp_path)


@pytest.fixture
def rooms(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rooms]:
    """Two processes. Floors are raised with every claim, so that whatever is below one would be missed."""
    for name in ("LOOK_S", "EMPTY_S"):
        monkeypatch.setattr(floors, name, 0.0)
    monkeypatch.setattr(due_memo, "LOOK_US", 0)
    with ExitStack() as stack:
        ann, bob = (
            stack.enter_context(postroom.open_sync(url, actor=name, housekeeping=False))
            for name in ("ann", "bob")
        )
        ann.create_queue("jobs", max_retries=9)
        yield ann, bob
        check_promises(ann)


def _floor(room: SyncRoom, queue: str = "jobs") -> int:
    found = room._core.store._floors  # type: ignore[attr-defined]
    return found.line(room.queue(queue).id)[1]


def _work(room: SyncRoom, count: int = 3, queue: str = "jobs") -> None:
    """Messages come and go until the floor has risen above LOWEST."""
    room.publish_many(queue, range(count))
    for message in room.claim(queue, limit=count):
        room.complete(message)
    assert room.claim(queue) == []


def test_floors_rise_with_what_is_done(rooms: Rooms) -> None:
    ann, _ = rooms
    _work(ann)
    before = _floor(ann)
    assert before > LOWEST
    _work(ann)
    assert _floor(ann) > before


RETURNS: dict[str, Callable[[SyncRoom, Message], Any]] = {
    "released": lambda room, message: room.release(message),
    "failed": lambda room, message: room.fail(message, "again", delay=0),
}


@pytest.mark.parametrize("how", RETURNS)
@pytest.mark.parametrize("by_other", [False, True])
def test_what_returns_to_its_line_is_claimed_before_what_came_later(
    rooms: Rooms, how: str, by_other: bool
) -> None:
    ann, bob = rooms
    _work(ann)
    first = ann.publish("jobs", "first").id
    [message] = ann.claim("jobs")
    ann.publish("jobs", "second")
    [second] = ann.claim("jobs")
    assert ann.claim("jobs") == []
    ann.complete(second)
    ann.publish("jobs", "third")
    RETURNS[how](bob if by_other else ann, message)
    for room in rooms:
        assert [each.id for each in room.peek("jobs", 1)] == [first]
    assert ann.claim("jobs")[0].id == first
    assert bob.claim("jobs")[0].body == "third"


def test_what_is_delayed_is_claimed_when_its_time_has_come(rooms: Rooms) -> None:
    ann, bob = rooms
    sent = bob.publish("jobs", "later", delay=0.3).id
    _work(ann)
    _work(bob)
    found = ann.claim("jobs", wait=30)
    assert [message.id for message in found] == [sent]


def test_a_lease_that_runs_out_gives_the_message_to_others(rooms: Rooms) -> None:
    ann, bob = rooms
    sent = ann.publish("jobs", "mine").id
    [held] = ann.claim("jobs", lease=0.3)
    _work(bob)
    [found] = bob.claim("jobs", wait=30)
    assert (found.id, found.attempts) == (sent, 2)
    assert held.claim_token != found.claim_token


def test_messages_that_come_in_another_order_than_time_are_never_below(rooms: Rooms) -> None:
    ann, bob = rooms
    for ordering in ("priority", "deadline"):
        ann.create_queue(ordering, ordering=ordering)
        _work(ann, queue=ordering)
        now = micros(time.time())
        messages = [
            NewMessage(body=n, priority_score=500 + n, deadline=now + micros(1000 - n)) for n in range(5)
        ]
        for message in messages:
            bob.publish_many(ordering, [message])
            ann.claim(ordering, ids=["nobody"])
        assert [ann.claim(ordering)[0].body for _ in range(5)] == [4, 3, 2, 1, 0]
        assert ann.claim(ordering) == bob.claim(ordering) == []


def test_a_publish_that_began_before_the_floor_rose_is_above_it(rooms: Rooms) -> None:
    ann, bob = rooms
    store = bob._core.store
    tx = store.begin()
    engine, builder = bob._core.committer._engine, bob._builder
    applied = engine.apply(tx, [builder.publish("jobs", "slow", {})])
    # Meanwhile the other goes on, and looks where the living begin.
    for _ in range(3):
        _work(ann)
    store.commit(tx)
    [receipt] = applied.outcomes[0].result()
    for room in (ann, bob):
        assert [message.id for message in room.peek("jobs")] == [receipt.id]
    assert [message.id for message in ann.claim("jobs")] == [receipt.id]


def test_a_claim_that_is_rolled_back_leaves_its_messages_above_the_floor(rooms: Rooms) -> None:
    ann, bob = rooms
    sent = [receipt.id for receipt in ann.publish_many("jobs", range(3))]
    store = bob._core.store
    tx = store.begin()
    command = bob._builder.claim(("jobs",), 2, None, None, None)
    bob._core.committer._engine.apply(tx, [command])
    assert [message.id for message in ann.claim("jobs")] == sent[2:]
    assert ann.claim("jobs") == []
    store.rollback(tx)
    assert [message.id for message in ann.claim("jobs", limit=5)] == sent[:2]


def test_several_queues_are_asked_at_once(rooms: Rooms) -> None:
    ann, bob = rooms
    ann.create_queue("others")
    for queue in ("jobs", "others"):
        _work(ann, queue=queue)
    sent = bob.publish("others", 1).id
    assert [message.id for message in ann.claim("jobs", "others")] == [sent]
    assert ann.claim("jobs", "others") == []


def _pages_read(db: psycopg.Connection, name: str, *bindings: Any) -> int:
    db.execute("BEGIN")
    explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {translate(WRITE_SQL[name])}"
    [(found,)] = db.execute(explain.encode(), bindings).fetchall()
    db.execute("ROLLBACK")
    plan = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def test_beside_a_long_query_a_claim_reads_few_pages(rooms: Rooms, url: str) -> None:
    ann, _ = rooms
    with (
        psycopg.connect(url) as analyst,
        psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as db,
    ):
        analyst.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        analyst.execute("SELECT count(*) FROM messages")
        for _ in range(20):
            _work(ann, 100)
        line = ann.queue("jobs").id
        returns, floor = ann._core.store._floors.line(line)  # type: ignore[attr-defined]
        blind = _pages_read(db, "ready", line, line, UNORDERED, LOWEST, 10)
        seeing = _pages_read(db, "ready", line, line, returns, floor, 10)
        assert blind > 100, "there is nothing to pass over"
        assert seeing < blind / 5
        assert ann._core.store._floors.due()[0] > LOWEST  # type: ignore[attr-defined]


def test_a_floor_holds_for_one_count_of_returns_and_some_time() -> None:
    now = 1000.0
    known = Floors(lambda: now)
    assert known.line(1) == (UNORDERED, LOWEST)
    assert known.meet(1, 0)
    known.raise_line(1, 0, 50)
    assert known.line(1) == (0, 50)
    assert not known.meet(1, 0), "it was just looked at"
    known.raise_line(1, 0, 40)
    assert known.line(1) == (0, 50), "it only rises"
    assert known.meet(1, 1)
    assert known.line(1) == (1, LOWEST)
    known.raise_line(1, 0, 60)
    assert known.line(1) == (1, LOWEST), "that was of before"
    known.raise_line(1, 1, 60)
    now += floors.AGAIN_S
    known.meet(1, 1)
    assert known.line(1) == (1, LOWEST)
    assert not known.meet(2, UNORDERED)
    assert known.due() == (LOWEST, True)
    known.raise_due(7)
    assert known.due() == (7, False)
    now += floors.AGAIN_S
    assert known.due()[0] == LOWEST


def test_where_nothing_is_found_floors_are_raised_less_often() -> None:
    now = 1000.0
    known = Floors(lambda: now)
    assert known.meet(1, 0, is_empty=True)
    now += floors.LOOK_S
    assert not known.meet(1, 0, is_empty=True)
    assert known.meet(1, 0)
    asked: list[int] = []
    for _ in range(3):
        known.oldest(lambda: asked.append(1) or 5)
    assert len(asked) == 1


def test_lines_that_nobody_asks_for_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floors, "MOST_LINES", 2)
    known = Floors()
    for line in range(3):
        known.meet(line, 0)
        known.raise_line(line, 0, 5)
    assert [known.line(line)[1] for line in range(3)] == [LOWEST, LOWEST, 5]


def test_what_is_due_is_not_asked_for_with_every_claim() -> None:
    memo = DueMemo()
    assert not memo.is_quiet(0)
    memo.note(1_000, None)
    assert memo.is_quiet(1_000 + due_memo.LOOK_US - 1)
    assert not memo.is_quiet(1_000 + due_memo.LOOK_US)
    memo.note(1_000, 1_500)
    assert not memo.is_quiet(1_500)
    memo.note(1_000, None, took_us=10_000)
    assert memo.is_quiet(1_000 + 10_000 * due_memo.TIMES - 1)
    memo.note(1_000, None, took_us=10**9)
    assert not memo.is_quiet(1_000 + due_memo.MOST_US)
    memo.expect(1_200)
    assert memo.is_quiet(1_199)
    assert not memo.is_quiet(1_200)
