"""Rooms behind PgBouncer, which gives each transaction to another session, work, and who waits is woken."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import postroom
from postroom.runtime import core
from tests import pgbouncer, postgres_server
from tests.conformance.promises import check_promises
from tests.conftest import postgres_url

COUNT = 100


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    postgres_url(tmp_path)
    server = postgres_server.shared_server()
    assert server is not None
    with pgbouncer.before(server) as found:
        yield found


def test_rooms_behind_a_pool_of_transactions_work_and_are_woken(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks again by himself: who waits is woken, by a room that hears and by one behind the pool."""
    monkeypatch.setattr(core, "POLL_S", 3600.0)

    def work(room: postroom.SyncRoom) -> int:
        """One by one, until it is told to stop."""
        for done in range(COUNT + 1):
            [message] = room.claim("jobs", wait=120)
            room.complete(message)
            if message.body == "stop":
                return done
        raise AssertionError("nobody said stop")

    with (
        postroom.open_sync(url, actor="ann") as ann,
        postroom.open_sync(url, actor="bob") as bob,
        postroom.open_sync(postgres_url(tmp_path), actor="direct") as direct,
        ThreadPoolExecutor(2) as threads,
    ):
        direct.create_queue("jobs")
        working = [threads.submit(work, room) for room in (ann, bob)]
        for number in range(COUNT):
            (direct if number % 2 else ann).publish("jobs", number, key=str(number))
        ann.publish("jobs", 0, key="0")
        for _ in working:
            direct.publish("jobs", "stop")
        assert sum(each.result(120) for each in working) == COUNT
        assert direct.counts("jobs").completed == COUNT + len(working)
        check_promises(bob)
