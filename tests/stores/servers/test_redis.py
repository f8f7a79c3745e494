"""Redis beside a server wakes who waits. Away, emptied or wrong it costs time only: rows are the truth."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

import postroom
from postroom import SyncRoom
from postroom.errors import InvalidField
from postroom.runtime import core
from postroom.stores.redis import RedisStore
from postroom.stores.redis.wakeups import RedisWakeups
from tests.conformance.helpers import waiting_claims
from tests.conformance.promises import check_promises
from tests.redis_server import RedisServer, find_server
from tests.stores.servers.conftest import Rooms, until
from tests.stores.servers.kinds import ServerKind


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    program = find_server()
    if program is None:
        pytest.skip("Redis is not installed: apt-get install redis-server")
    server = RedisServer(program, tmp_path)
    yield server
    server.stop()


@pytest.fixture
def rooms(
    kind: ServerKind, url: str, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Rooms]:
    """Only Redis wakes anybody: the database tells nothing, and nobody looks by himself."""
    monkeypatch.setattr(kind.store_class, "listen", lambda store, wake: None)
    monkeypatch.setattr(core, "POLL_S", 3600.0)
    with ExitStack() as stack:
        opened = [
            stack.enter_context(
                postroom.open_sync(url, actor=name, housekeeping=False, redis=redis_server.url)
            )
            for name in ("ann", "bob")
        ]
        for room in opened:
            until(store_of(room).wakeups.is_listening.is_set)
        opened[0].create_queue("jobs")
        yield opened[0], opened[1]
        check_promises(opened[0])


def store_of(room: SyncRoom) -> RedisStore:
    store = room._core.store
    assert isinstance(store, RedisStore)
    return store


def claim_what_the_other_publishes(rooms: Rooms, body: str) -> None:
    ann, bob = rooms
    with ThreadPoolExecutor(1) as threads:
        claiming = threads.submit(bob.claim, "jobs", wait=3600)
        until(lambda: waiting_claims(bob) == 1)
        ann.publish("jobs", body)
        [message] = claiming.result(60)
    assert message.body == body
    bob.complete(message)


def test_who_waits_is_woken_by_redis_alone(rooms: Rooms) -> None:
    claim_what_the_other_publishes(rooms, "good morning")


def test_redis_that_is_emptied_or_told_nonsense_wakes_as_before(
    rooms: Rooms, redis_server: RedisServer
) -> None:
    channel = store_of(rooms[0]).wakeups._channel
    redis_server.send("FLUSHALL")
    for nonsense in (b"\xff", b"[1", b"{}", b'["x", [[1]]]', b'["x", [["a", 1]]]', b'["x", [[987654, 3]]]'):
        redis_server.send("PUBLISH", channel, nonsense)
    claim_what_the_other_publishes(rooms, "still here")


def test_work_goes_on_without_redis_and_wakes_when_it_is_back(
    rooms: Rooms, redis_server: RedisServer
) -> None:
    ann, bob = rooms
    redis_server.stop()
    for room in rooms:
        until(lambda room=room: not store_of(room).wakeups.is_listening.is_set())
    ann.publish_many("jobs", list(range(20)))
    for message in bob.claim("jobs", limit=20):
        bob.complete(message)
    assert ann.counts("jobs").completed == 20
    redis_server.start()
    for room in rooms:
        until(store_of(room).wakeups.is_listening.is_set)
    # The thread that tells may have lost its connection a moment ago; it is told again until it is heard.
    with ThreadPoolExecutor(1) as threads:
        claiming = threads.submit(bob.claim, "jobs", wait=3600)
        until(lambda: waiting_claims(bob) == 1)

        def publish_until_claimed() -> bool:
            if not claiming.done():
                ann.publish("jobs", "again")
            return claiming.done()

        until(publish_until_claimed)
        assert claiming.result()


def test_a_store_that_is_a_file_has_no_use_for_redis(tmp_path: Path) -> None:
    with pytest.raises(InvalidField, match="is for a store on a database server"):
        postroom.open_sync(f"sqlite:///{tmp_path / 'a.db'}", redis="redis://localhost").__enter__()
    with pytest.raises(InvalidField, match="begins with one of"):
        postroom.open_sync("mariadb://me@db.example/room", redis="localhost").__enter__()


def test_what_never_began_ends_at_once() -> None:
    wakeups = RedisWakeups("redis://127.0.0.1:9", "room")
    wakeups.tell({1: 1})
    wakeups.close()
    assert not wakeups.is_listening.is_set()
