"""Two rooms on one database, as two processes have them, and one of them held where the other must wait."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postroom
from postroom import SyncRoom
from postroom.kernel.ports import Transaction
from tests.conformance.promises import check_promises
from tests.conftest import postgres_url

Rooms = tuple[SyncRoom, SyncRoom]


def until(holds: Callable[[], bool], within: float = 60.0) -> None:
    end = time.monotonic() + within
    while not holds():
        assert time.monotonic() < end, "it does not come to hold"
        time.sleep(0.01)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return postgres_url(tmp_path)


@pytest.fixture
def rooms(url: str) -> Iterator[Rooms]:
    with ExitStack() as stack:
        opened = [
            stack.enter_context(postroom.open_sync(url, actor=name, housekeeping=False))
            for name in ("ann", "bob")
        ]
        opened[0].create_queue("jobs")
        yield opened[0], opened[1]
        check_promises(opened[0])


class Held:
    """A room whose next transaction stops before its commit, with everything else sent and locked."""

    def __init__(self, room: SyncRoom, url: str) -> None:
        self._store, self._url = room._core.store, url
        self._arrived, self._gate = threading.Event(), threading.Event()
        self._threads = ThreadPoolExecutor(2)

    def race(self, first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Future[Any], Future[Any]]:
        """The first is held; the second runs until it is done or waits for the first, which then goes on."""
        commit = self._store.commit

        def hold(tx: Transaction) -> None:
            self._store.commit = commit
            self._arrived.set()
            self._gate.wait(60)
            commit(tx)

        self._store.commit = hold
        one = self._threads.submit(first)
        assert self._arrived.wait(60)
        other = self._threads.submit(second)
        with psycopg.connect(self._url, autocommit=True) as db:
            until(lambda: other.done() or self._waits(db))
        self._gate.set()
        self._threads.shutdown()
        return one, other

    def _waits(self, db: psycopg.Connection) -> bool:
        sql = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        [(waiting,)] = db.execute(sql).fetchall()
        return waiting > 0
