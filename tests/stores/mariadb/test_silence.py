"""A session that is not heard of is ended by the server; a process that only works for long gets there."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pymysql
import pytest

import postroom
from postroom.stores.mariadb import MariadbStore, store
from postroom.stores.mariadb.connection import MariadbReadConnection, MariadbWriteConnection
from tests.conftest import mariadb_url
from tests.stores.servers.conftest import until

GIVEN = "SELECT @@idle_transaction_timeout"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(store, "STILL_S", 1)
    return mariadb_url(tmp_path)


@pytest.fixture
def watcher(url: str) -> Iterator[MariadbReadConnection]:
    with closing(MariadbStore(url)) as opened, closing(opened._connect()) as db:
        yield MariadbReadConnection(db)


def _is_ended(watcher: MariadbReadConnection, db: "pymysql.Connection[Any]") -> bool:
    sql = "SELECT 1 FROM information_schema.processlist WHERE id = ?"
    return not watcher.fetch(sql, (db.thread_id(),))


def _wait_until_ended(watcher: MariadbReadConnection, db: "pymysql.Connection[Any]") -> None:
    until(lambda: _is_ended(watcher, db))


def test_who_was_ended_has_more_time_until_a_commit(url: str, watcher: MariadbReadConnection) -> None:
    with closing(MariadbStore(url)) as opened:
        for given in (1, 4, 16):
            tx: Any = opened.begin()
            assert tx.connection.fetch(GIVEN) == [(given,)]
            tx.connection._heard_at -= given
            watcher.db.kill(tx.connection.db.thread_id())
            _wait_until_ended(watcher, tx.connection.db)
            with pytest.raises(pymysql.MySQLError):
                tx.connection.fetch(GIVEN)
            opened.rollback(tx)
        tx = opened.begin()
        assert tx.connection.fetch(GIVEN) == [(64,)]
        opened.commit(tx)
        tx = opened.begin()
        assert tx.connection.fetch(GIVEN) == [(1,)]
        opened.rollback(tx)


def test_work_that_takes_longer_than_a_frozen_process_is_waited_for_is_done_once(
    url: str, watcher: MariadbReadConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, given = MariadbWriteConnection.commit, []

    def work_long(connection: MariadbWriteConnection) -> None:
        [(seconds,)] = MariadbReadConnection(connection.db).fetch(GIVEN)
        given.append(seconds)
        if seconds == 1:
            _wait_until_ended(watcher, connection.db)
        commit(connection)

    with postroom.open_sync(url, housekeeping=False) as room:
        room.create_queue("jobs")
        monkeypatch.setattr(MariadbWriteConnection, "commit", work_long)
        receipt = room.publish("jobs", "large")
        monkeypatch.undo()
        assert given == [1, 4]
        assert [each.id for each in room.messages(queue="jobs").messages] == [receipt.id]
