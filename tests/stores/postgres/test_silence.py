"""A session that others wait for and that is not heard of is ended by them; a process that only works for
long gets there."""

import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postroom
from postroom.stores.postgres import PostgresStore, frozen, store
from postroom.stores.postgres.connection import PostgresWriteConnection
from tests.conftest import postgres_url
from tests.stores.servers.conftest import until

GIVEN = "SELECT current_setting('application_name'), current_setting('idle_in_transaction_session_timeout')"
HOLD = "SELECT n FROM figures WHERE name = 'head' FOR UPDATE"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(frozen, "STILL_S", 1)
    monkeypatch.setattr(store, "STILL_S", 1)
    monkeypatch.setattr(frozen, "LOOK_S", 0.2)
    return postgres_url(tmp_path)


@pytest.fixture
def watcher(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True) as db:
        yield db


def _wait_until_ended(watcher: psycopg.Connection, pid: int) -> None:
    until(lambda: not watcher.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchall())


@contextlib.contextmanager
def _waiting(url: str) -> Iterator[None]:
    """Another process wants what is held; who holds it must let it go, or be ended."""
    with psycopg.connect(url, autocommit=True) as db:
        thread = threading.Thread(target=db.execute, args=(HOLD,))
        thread.start()
        try:
            yield
        finally:
            thread.join()


def test_who_was_ended_has_more_time_until_a_commit(url: str, watcher: psycopg.Connection) -> None:
    with closing(PostgresStore(url)) as opened:
        name = opened._options["application_name"]
        for ending, idle in (("", "20s"), ("04", "20s"), ("16", "20s"), ("64", "64s")):
            tx: Any = opened.begin()
            assert tx.connection.fetch(GIVEN) == [(name + ending, idle)]
            tx.connection._heard_at -= int(ending or 1)
            pid = tx.connection.db.info.backend_pid
            watcher.execute("SELECT pg_terminate_backend(%s)", (pid,))
            _wait_until_ended(watcher, pid)
            with pytest.raises(psycopg.OperationalError):
                tx.connection.fetch(GIVEN)
            opened.rollback(tx)
        tx = opened.begin()
        assert tx.connection.fetch(GIVEN) == [(f"{name}80", "80s")]
        opened.commit(tx)
        tx = opened.begin()
        assert tx.connection.fetch(GIVEN) == [(name, "20s")]
        opened.rollback(tx)


def test_who_fails_otherwise_has_not_more_time(url: str) -> None:
    with closing(PostgresStore(url)) as opened:
        tx: Any = opened.begin()
        tx.connection._heard_at -= 60
        opened.rollback(tx)
        assert not opened._patience.is_longer


def test_work_that_takes_longer_than_a_frozen_process_is_waited_for_is_done_once(
    url: str, watcher: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, ended = PostgresWriteConnection.commit, []

    def work_long(connection: PostgresWriteConnection) -> None:
        connection.fetch(HOLD)
        pid = connection.db.info.backend_pid
        with _waiting(url):
            if not ended:
                _wait_until_ended(watcher, pid)  # by the other room, which looks for such
                ended.append(pid)
            else:
                time.sleep(2.5)  # as long again
            commit(connection)

    with postroom.open_sync(url, housekeeping=False) as room, postroom.open_sync(url, housekeeping=False):
        room.create_queue("jobs")
        monkeypatch.setattr(PostgresWriteConnection, "commit", work_long)
        receipt = room.publish("jobs", "large")
        monkeypatch.undo()
        assert len(ended) == 1
        assert [each.id for each in room.messages(queue="jobs").messages] == [receipt.id]
