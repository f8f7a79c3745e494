"""Two rooms on one database, as two processes have them, and one of them held where the other must wait."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom import SyncRoom
from postroom.kernel.ports import Transaction
from tests.conformance.promises import check_promises
from tests.stores.servers.kinds import KINDS, ServerKind

Rooms = tuple[SyncRoom, SyncRoom]


def until(holds: Callable[[], bool], within: float = 60.0) -> None:
    end = time.monotonic() + within
    while not holds():
        assert time.monotonic() < end, "it does not come to hold"
        time.sleep(0.01)


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> ServerKind:
    return request.param


@pytest.fixture
def url(kind: ServerKind, tmp_path: Path) -> str:
    return kind.url(tmp_path)


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


Race = Callable[[SyncRoom, Callable[[], Any], Callable[[], Any]], tuple[Future[Any], Future[Any]]]


@pytest.fixture
def race(kind: ServerKind, url: str) -> Race:
    """A room is held before its commit, with everything else sent and locked. The second runs until it is
    done or waits for the first, which then goes on."""

    def run(
        held: SyncRoom, first: Callable[[], Any], second: Callable[[], Any]
    ) -> tuple[Future[Any], Future[Any]]:
        store = held._core.store
        arrived, gate = threading.Event(), threading.Event()
        commit = store.commit

        def hold(tx: Transaction) -> None:
            store.commit = commit
            arrived.set()
            gate.wait(60)
            commit(tx)

        store.commit = hold
        with ThreadPoolExecutor(2) as threads:
            one = threads.submit(first)
            assert arrived.wait(60)
            other = threads.submit(second)
            until(lambda: other.done() or kind.fetch(url, kind.waiting)[0][0] > 0)
            gate.set()
        return one, other

    return run
