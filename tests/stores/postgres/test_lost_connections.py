"""A connection is lost, a server restarts, a process is killed: nothing is lost, nothing is done twice."""

import contextlib
import subprocess
import sys

import psycopg
import pytest

import postroom
from postroom.errors import StoreFailed
from postroom.stores.postgres import store as stores
from postroom.stores.postgres.connection import PostgresWriteConnection
from tests.conformance.helpers import events_of
from tests.conformance.promises import check_promises
from tests.postgres_server import shared_server
from tests.stores.postgres.conftest import Rooms, until


def lose_next_commit(monkeypatch: pytest.MonkeyPatch, *, arrives: bool) -> None:
    """The next commit's connection breaks: before the server hears of it, or before we hear its answer."""
    commit = PostgresWriteConnection.commit

    def lose(connection: PostgresWriteConnection) -> None:
        monkeypatch.setattr(PostgresWriteConnection, "commit", commit)
        if arrives:
            commit(connection)
        connection.db.close()
        raise psycopg.OperationalError("the connection was lost")

    monkeypatch.setattr(PostgresWriteConnection, "commit", lose)


@pytest.mark.parametrize("arrives", [True, False], ids=["after the commit", "before the commit"])
def test_a_connection_that_is_lost_at_the_commit_leaves_one_message(
    rooms: Rooms, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    ann, bob = rooms
    lose_next_commit(monkeypatch, arrives=arrives)
    receipt = ann.publish("jobs", "once, without a key")
    [message] = bob.messages(queue="jobs").messages
    assert message.id == receipt.id
    assert events_of(bob, receipt.id) == ["published"]


def test_a_commit_whose_fate_is_unknown_is_said_to_be_so_and_not_tried_again(
    rooms: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = rooms
    monkeypatch.setattr(stores, "FATE_S", 0.0)
    monkeypatch.setattr(stores.PostgresStore, "_ask_fate", lambda store, number: "the server is away")
    lose_next_commit(monkeypatch, arrives=True)
    with pytest.raises(StoreFailed, match="retry with an idempotency key"):
        ann.publish("jobs", 1)
    assert bob.counts("jobs").pending == 1


def test_a_commit_whose_fate_is_known_later_is_waited_for(
    rooms: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that restarts is away for a while, and then can say."""
    ann, bob = rooms
    ask, away = stores.PostgresStore._ask_fate, ["the server is away"] * 3

    def answer(store: stores.PostgresStore, number: str) -> str:
        return away.pop() if away else ask(store, number)

    monkeypatch.setattr(stores.PostgresStore, "_ask_fate", answer)
    lose_next_commit(monkeypatch, arrives=True)
    receipt = ann.publish("jobs", 1)
    assert away == []
    assert [message.id for message in bob.messages(queue="jobs").messages] == [receipt.id]


def test_a_backend_that_is_killed_costs_nothing_but_time(rooms: Rooms, url: str) -> None:
    ann, bob = rooms
    ann.publish("jobs", 1)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
    assert ann.counts("jobs").pending == 1
    ann.publish("jobs", 2)
    assert [message.body for message in bob.claim("jobs", limit=5)] == [1, 2]


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_rooms_go_on_after_the_server_has_restarted(rooms: Rooms, mode: str) -> None:
    ann, bob = rooms
    server = shared_server()
    assert server is not None
    ann.publish("jobs", 1)
    server.stop(mode)
    server.start()
    ann.publish("jobs", 2)
    assert [message.body for message in bob.claim("jobs", limit=5)] == [1, 2]
    listener = bob._core.store._listener  # type: ignore[attr-defined]
    until(listener.is_listening.is_set)


WORKER = """
import sys
import postroom
with postroom.open_sync(sys.argv[1], actor=sys.argv[2]) as room:
    print("ready", flush=True)
    while True:
        for message in room.claim("jobs", limit=3, wait=1, lease=2):
            room.complete(message, {"by": sys.argv[2]})
"""


def test_of_two_processes_one_is_killed_and_the_other_ends_its_work(url: str) -> None:
    count = 200
    with postroom.open_sync(url, actor="publisher") as room, contextlib.ExitStack() as stack:
        room.create_queue("jobs")
        room.publish_many("jobs", list(range(count)))
        workers = [_start_worker(stack, url, name) for name in ("one", "two")]
        until(lambda: room.counts("jobs").completed > 20)
        workers[0].kill()
        workers[0].wait()
        until(lambda: room.counts("jobs").completed == count, within=120)
        ended = room.messages(queue="jobs", limit=count).messages
        assert sorted(message.body for message in ended) == list(range(count))
        for message in ended:
            assert events_of(room, message.id).count("completed") == 1
        check_promises(room)


def _start_worker(stack: contextlib.ExitStack, url: str, name: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", WORKER, url, name], stdout=subprocess.PIPE)
    stack.callback(process.wait)
    stack.callback(process.kill)
    assert process.stdout is not None
    stack.callback(process.stdout.close)
    assert process.stdout.readline() == b"ready\n"
    return process
