"""How many calls of the driver a verb costs, however many messages it is about.

What is counted waits for an answer: one call of `execute` or `executemany`, whatever it is told to do.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom import Message, NewMessage, SyncRoom
from postroom.kernel import commands as c
from postroom.kernel import service_commands
from postroom.kernel.directory import Directory
from postroom.kernel.rows import Content, Row
from postroom.kernel.rules import parsing, rule
from postroom.kernel.session import Session
from postroom.stores.sqlite import SqliteStore
from postroom.stores.sqlite import connection as connections

COUNTS = (1, 10, 100, 1000)


class CountingConnection:
    """A connection that says how often it was called."""

    def __init__(self, db: Any) -> None:
        self._db = db
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def execute(self, sql: str, *args: Any) -> Any:
        self.calls.append(sql)
        return self._db.execute(sql, *args)

    def executemany(self, sql: str, *args: Any) -> Any:
        self.calls.append(sql)
        return self._db.executemany(sql, *args)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[SyncRoom]:
    with postroom.open_sync(f"sqlite:///{tmp_path / 'room.db'}", housekeeping=False) as room:
        room.create_queue("jobs")
        # Queues, scopes and rules are read once, when they are first needed.
        [first] = room.claim("jobs") or [_publish_and_claim(room)]
        room.extend(first)
        room.complete(first)
        yield room


def _publish_and_claim(room: SyncRoom) -> Message:
    room.publish("jobs", 0)
    return room.claim("jobs")[0]


@pytest.fixture
def calls(room: SyncRoom, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    store = room._core.store
    assert isinstance(store, SqliteStore)
    counting = CountingConnection(store._db)
    monkeypatch.setattr(store, "_db", counting)
    return counting.calls


def spent(calls: list[str], work: Callable[[], Any]) -> int:
    calls.clear()
    work()
    assert connections.BEGIN in calls[0]
    assert calls[-1].endswith("COMMIT")
    return len(calls)


def together(room: SyncRoom, commands: list[c.Command]) -> list[Any]:
    """As one group of requests, as when many callers wait."""
    answers: list[Any] = []
    committer = room._core.committer
    assert committer.try_half(commands, answers.extend)
    committer._halves.put(None)
    committer._syncer.join()
    return [outcome.result() for outcome in answers]


@pytest.mark.parametrize("count", COUNTS)
def test_publish_costs_at_most_five_calls(room: SyncRoom, calls: list[str], count: int) -> None:
    assert spent(calls, lambda: room.publish_many("jobs", list(range(count)))) <= 5
    keyed = [NewMessage(body=n, idempotency_key=f"key {n}") for n in range(count)]
    assert spent(calls, lambda: room.publish_many("jobs", keyed)) <= 5
    # Repeated, they are found and nothing is written.
    calls.clear()
    assert not any(receipt.created for receipt in room.publish_many("jobs", keyed))
    assert len(calls) <= 5


@pytest.mark.parametrize("count", COUNTS)
def test_claim_costs_at_most_three_calls_and_complete_five(
    room: SyncRoom, calls: list[str], count: int
) -> None:
    room.publish_many("jobs", list(range(count)))
    claimed: list[Message] = []
    assert spent(calls, lambda: claimed.extend(room.claim("jobs", limit=count))) <= 3
    assert len(claimed) == count
    completions: list[c.Command] = []
    for each in claimed:
        completions.append(c.Complete(message_id=each.id, token=each.claim_token or "", actor=room.actor))
    assert spent(calls, lambda: together(room, completions)) <= 5
    assert room.counts("jobs").completed == count + 1


@pytest.mark.parametrize("count", COUNTS)
def test_claims_of_many_workers_cost_at_most_three_calls(
    room: SyncRoom, calls: list[str], count: int
) -> None:
    room.publish_many("jobs", list(range(count)))
    claims: list[c.Command] = [
        c.Claim(queues=("default/jobs",), worker=f"worker {n}", lease_s=10 + n, actor=f"worker {n}")
        for n in range(count)
    ]
    taken: list[Any] = []
    assert spent(calls, lambda: taken.extend(together(room, claims))) <= 3
    assert len({batch.messages[0].row.id for batch in taken}) == count


@pytest.mark.parametrize("count", COUNTS)
def test_extend_costs_at_most_two_calls(room: SyncRoom, calls: list[str], count: int) -> None:
    room.publish_many("jobs", list(range(count)))
    claimed = room.claim("jobs", limit=count)
    claims = tuple((each.id, each.claim_token or "") for each in claimed)
    ends: dict[str, int] = {}
    work = c.ExtendMany(claims=claims, lease_s=60, actor=room.actor, tenant=room.tenant)
    assert spent(calls, lambda: ends.update(room.run(work))) <= 2
    assert ends.keys() == {each.id for each in claimed}


@pytest.mark.parametrize("count", COUNTS)
def test_a_rule_that_copies_and_one_that_moves_cost_no_calls_for_each_message(
    room: SyncRoom, calls: list[str], count: int
) -> None:
    queues = {name: room.create_queue(name).id for name in ("orders", "bulk", "done", "parcels")}
    scope = room.scope("default").id
    actions: dict[str, dict[str, Any]] = {
        "orders": {"type": "fan_out", "target_queue_ids": ["bulk", "done"]},
        "parcels": {"type": "route", "target_queue_id": "bulk"},
    }
    for source, action in actions.items():
        draft = {"name": source, "source_queue_id": source, "action": action}
        made = parsing.drafted(draft, lambda name, field: queues[name], rule_id=source, now=0)
        data, key = rule.written(made), f"{scope}/{source}"
        room.run(service_commands.PutServiceDocument(kind=rule.KIND, key=key, data=data, scope="default"))
    for source in actions:
        room.publish(source, "once, so that queues and rules are known")
        calls.clear()
        room.publish_many(source, list(range(count)))
        assert len(calls) <= 6
    assert (room.counts("bulk").pending, room.counts("done").pending) == (2 * count + 2, count + 1)


def test_a_message_made_in_a_savepoint_is_gone_with_the_one_around_it(room: SyncRoom) -> None:
    class Refused(Exception):
        pass

    tx = room._core.store.begin()
    session = Session(tx, Directory())
    queue = session.queue(room.tenant, "default", "jobs")
    assert queue is not None
    row = Row(
        "made", room.tenant, queue.scope_id, queue.id, 0, None, "pending", 0, None, "", "normal", 0, 0, 0,
        None, None, None, None, None, 0, None,
    )  # fmt: skip
    content = Content(*["application/json", b"1", *[None] * 5, "user", *[None] * 8])

    def make_and_refuse() -> None:
        with session.savepoint():
            with session.savepoint():
                session.add([row], [content])
                assert session.row("made") is row
            assert session.content(row) is content
            raise Refused

    with pytest.raises(Refused):
        make_and_refuse()
    assert session.row("made") is None
    room._core.store.rollback(tx)


def test_one_publish_is_one_call(room: SyncRoom, calls: list[str]) -> None:
    assert spent(calls, lambda: room.publish("jobs", {"n": 1})) == 1


def test_a_refused_request_costs_no_transaction(room: SyncRoom, calls: list[str]) -> None:
    with pytest.raises(postroom.PostroomError):
        room.publish("jobs", object())
    assert calls == []


def test_statements_sent_together_are_prepared_once(room: SyncRoom, calls: list[str]) -> None:
    store = room._core.store
    assert isinstance(store, SqliteStore)
    for _ in range(3):
        room.complete(_publish_and_claim(room))
    before = store._db.cache_stats()["misses"]
    for _ in range(20):
        room.complete(_publish_and_claim(room))
    assert store._db.cache_stats()["misses"] == before
