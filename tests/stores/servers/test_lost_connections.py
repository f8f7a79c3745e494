"""A connection is lost, a server restarts, a process is killed: nothing is lost, nothing is done twice."""

import contextlib
import subprocess
import sys
from typing import Any

import pytest

import postroom
from postroom.errors import StoreFailed
from tests.conformance.helpers import events_of
from tests.conformance.promises import check_promises
from tests.stores.servers.conftest import Rooms, until
from tests.stores.servers.kinds import ServerKind


def lose_next_commit(kind: ServerKind, monkeypatch: pytest.MonkeyPatch, *, arrives: bool) -> None:
    """The next commit's connection breaks: before the server hears of it, or before we hear its answer."""
    commit = kind.connection_class.commit

    def lose(connection: Any) -> None:
        monkeypatch.setattr(kind.connection_class, "commit", commit)
        if arrives:
            commit(connection)
        connection.db.close()
        raise kind.lost()

    monkeypatch.setattr(kind.connection_class, "commit", lose)


@pytest.mark.parametrize("arrives", [True, False], ids=["after the commit", "before the commit"])
def test_a_connection_that_is_lost_at_the_commit_leaves_one_message(
    kind: ServerKind, rooms: Rooms, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    ann, bob = rooms
    lose_next_commit(kind, monkeypatch, arrives=arrives)
    receipt = ann.publish("jobs", "once, without a key")
    [message] = bob.messages(queue="jobs").messages
    assert message.id == receipt.id
    assert events_of(bob, receipt.id) == ["published"]


def test_a_commit_whose_fate_is_unknown_is_said_to_be_so_and_not_tried_again(
    kind: ServerKind, rooms: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = rooms
    monkeypatch.setattr(kind.stores, "FATE_S", 0.0)
    monkeypatch.setattr(kind.store_class, "_ask_fate", lambda store, number: kind.away)
    lose_next_commit(kind, monkeypatch, arrives=True)
    with pytest.raises(StoreFailed, match="retry with an idempotency key"):
        ann.publish("jobs", 1)
    assert bob.counts("jobs").pending == 1


def test_a_commit_whose_fate_is_known_later_is_waited_for(
    kind: ServerKind, rooms: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that restarts is away for a while, and then can say."""
    ann, bob = rooms
    ask, away = kind.store_class._ask_fate, [kind.away] * 3

    def answer(store: Any, number: Any) -> Any:
        return away.pop() if away else ask(store, number)

    monkeypatch.setattr(kind.store_class, "_ask_fate", answer)
    lose_next_commit(kind, monkeypatch, arrives=True)
    receipt = ann.publish("jobs", 1)
    assert away == []
    assert [message.id for message in bob.messages(queue="jobs").messages] == [receipt.id]


def test_a_backend_that_is_killed_costs_nothing_but_time(kind: ServerKind, rooms: Rooms, url: str) -> None:
    ann, bob = rooms
    ann.publish("jobs", 1)
    kind.kill_connections(url)
    assert ann.counts("jobs").pending == 1
    ann.publish("jobs", 2)
    assert [message.body for message in bob.claim("jobs", limit=5)] == [1, 2]


@pytest.mark.parametrize("cut", [False, True], ids=["stopped", "cut off"])
def test_rooms_go_on_after_the_server_has_restarted(kind: ServerKind, rooms: Rooms, cut: bool) -> None:
    ann, bob = rooms
    ann.publish("jobs", 1)
    kind.restart(cut)
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
