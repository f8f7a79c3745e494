"""Who is taken for frozen, and who is not."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import postroom
from postroom.stores.postgres import frozen
from postroom.stores.postgres.frozen import NAME, FrozenSessions
from tests.conftest import postgres_url
from tests.stores.servers.conftest import until


@contextlib.contextmanager
def waited_for(url: str, name: str) -> Iterator[psycopg.Connection]:
    """A session that holds what another waits for; a third, to look at them."""
    lock = "SELECT n FROM figures WHERE name = 'head' FOR UPDATE"
    with (
        psycopg.connect(url, autocommit=True, application_name=name) as holder,
        psycopg.connect(url, autocommit=True) as waiter,
        psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as looking,
    ):
        holder.execute("BEGIN")
        holder.execute(lock)
        thread = threading.Thread(target=waiter.execute, args=(lock,))
        thread.start()
        try:
            waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            until(lambda: looking.execute(waits).fetchall() == [(1,)])
            yield looking
        finally:
            # Then the other has what it waited for.
            holder.close()
            thread.join()


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(frozen, "STILL_S", 0.0)
    monkeypatch.setattr(frozen, "LOOK_S", 0.0)
    found = postgres_url(tmp_path)
    with postroom.open_sync(found, housekeeping=False):
        return found


def test_a_session_of_a_room_that_has_not_moved_between_two_looks_is_ended(url: str) -> None:
    sessions, name = FrozenSessions(), f"shop {NAME}0123456789ab"
    with waited_for(url, name) as db:
        assert sessions.look(db) == [], "it has some time"
        assert sessions.look(db) == [name]
        until(lambda: sessions.look(db) == [])


@pytest.mark.parametrize("name", ["", "psql", f"{NAME}of another program"])
def test_a_session_that_is_not_a_rooms_is_left_alone(url: str, name: str) -> None:
    """As that of a move, which holds a store still for as long as it takes."""
    sessions = FrozenSessions()
    with waited_for(url, name) as db:
        assert [sessions.look(db) for _ in range(3)] == [[], [], []]
