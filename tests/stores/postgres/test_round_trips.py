"""How often a transaction waits for the server, however many messages it is about."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom import Message, SyncRoom
from postroom.kernel import commands as c
from postroom.stores.postgres import floors
from postroom.stores.postgres.connection import PostgresWriteConnection
from tests.conftest import postgres_url

COUNTS = (1, 10, 100, 1000)
MOST = 5
# What each writer of a process reads once, when it first needs it.
REMEMBERED = ("FROM queues", "FROM scopes", "FROM subscriptions", "FROM documents")


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SyncRoom]:
    with postroom.open_sync(postgres_url(tmp_path), housekeeping=False) as room:
        room.create_queue("jobs")
        # Where the living begin is looked at with a first claim, and then once a second.
        monkeypatch.setattr(floors, "LOOK_S", 3600.0)
        assert room.claim("jobs") == []
        yield room


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    begin, execute = PostgresWriteConnection.begin, PostgresWriteConnection._execute

    def note_begin(db: PostgresWriteConnection, *args: Any) -> Any:
        found.append("BEGIN")
        return begin(db, *args)

    def note(db: PostgresWriteConnection, sql: str, bindings: Any) -> Any:
        if not any(table in sql for table in REMEMBERED):
            found.append(sql)
        return execute(db, sql, bindings)

    monkeypatch.setattr(PostgresWriteConnection, "begin", note_begin)
    monkeypatch.setattr(PostgresWriteConnection, "_execute", note)
    return found


def spent(trips: list[str], work: Callable[[], Any]) -> tuple[int, Any]:
    trips.clear()
    value = work()
    assert (trips[0], trips[-1], trips.count("BEGIN")) == ("BEGIN", "COMMIT", 1)
    return len(trips), value


def complete_together(room: SyncRoom, messages: list[Message]) -> None:
    """As one group of requests, as when many callers wait."""
    commands = [
        c.Complete(message_id=message.id, token=message.claim_token or "", actor="test")
        for message in messages
    ]
    committer = room._core.committer
    for outcome in committer._commit(committer._engine, commands):
        outcome.result()


@pytest.mark.parametrize("count", COUNTS)
def test_a_transaction_costs_few_round_trips_however_many_messages(
    room: SyncRoom, trips: list[str], count: int
) -> None:
    published, _ = spent(trips, lambda: room.publish_many("jobs", range(count)))
    claimed, messages = spent(trips, lambda: room.claim("jobs", limit=count))
    assert len(messages) == count
    completed, _ = spent(trips, lambda: complete_together(room, messages))
    assert max(published, claimed, completed) <= MOST, (published, claimed, completed)
