"""What a process has claimed it completes without reading it again. Whatever others did to it meanwhile is
seen all the same, since the server compares the token of the claim."""

from collections.abc import Callable
from typing import Any

import pytest

from postroom import Message, State, SyncRoom
from postroom.errors import ClaimLost
from postroom.stores.sql.messages import MessageReads
from tests.stores.servers.conftest import Race, Rooms

Meanwhile = Callable[[SyncRoom, Message], Any]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of rows that were read."""
    found: list[str] = []
    rows = MessageReads.rows

    def note(tx: Any, message_ids: list[str]) -> Any:
        found.extend(message_ids)
        return rows(tx, message_ids)

    monkeypatch.setattr(MessageReads, "rows", note)
    return found


def _claim(room: SyncRoom, count: int = 1) -> list[Message]:
    room.publish_many("jobs", range(count))
    return room.claim("jobs", limit=count)


def test_what_a_process_has_claimed_it_completes_without_reading(rooms: Rooms, read: list[str]) -> None:
    ann, bob = rooms
    done = _claim(ann, 5)
    ann.complete(done[0], {"paid": True})
    assert ann.complete_many([(message, None) for message in done[1:3]]) == [None, None]
    assert read == []
    bob.complete(done[3])
    assert read == [done[3].id]
    assert [bob.get(message.id).state for message in done[:4]] == [State.COMPLETED] * 4
    assert bob.get(done[0].id).result == {"paid": True}


LOST: dict[str, Meanwhile] = {
    "cancelled": lambda bob, message: bob.cancel(message.id),
    "killed": lambda bob, message: bob.kill(message.id, "enough"),
    "released": lambda bob, message: bob.release(message),
    "failed": lambda bob, message: bob.fail(message, "no", delay=60),
    "taken over": lambda bob, message: (bob.release(message), bob.claim("jobs")),
}


@pytest.mark.parametrize("what", LOST)
def test_a_claim_that_somebody_else_ended_is_lost(rooms: Rooms, what: str) -> None:
    ann, bob = rooms
    [message] = _claim(ann)
    LOST[what](bob, message)
    before = bob.get(message.id)
    with pytest.raises(ClaimLost):
        ann.complete(message, "too late")
    assert bob.get(message.id) == before


def test_of_many_only_the_lost_one_is_refused(rooms: Rooms) -> None:
    ann, bob = rooms
    messages = _claim(ann, 4)
    bob.cancel(messages[2].id)
    outcomes = ann.complete_many([(message, None) for message in messages])
    assert [type(each) for each in outcomes] == [type(None), type(None), ClaimLost, type(None)]
    states = [bob.get(message.id).state for message in messages]
    assert states == [State.COMPLETED, State.COMPLETED, State.CANCELLED, State.COMPLETED]


KEPT: dict[str, Meanwhile] = {
    "extended": lambda bob, message: bob.extend(message, 300),
    "already completed": lambda bob, message: bob.complete(message, "done"),
}


@pytest.mark.parametrize("what", KEPT)
def test_a_claim_that_somebody_else_touched_is_still_ones_own(rooms: Rooms, what: str) -> None:
    ann, bob = rooms
    [message] = _claim(ann)
    KEPT[what](bob, message)
    ann.complete(message, "done")
    found = bob.get(message.id)
    assert (found.state, found.result) == (State.COMPLETED, "done")
    ends = [event for event in bob.events() if event.type == "message.completed"]
    assert [event.message_id for event in ends] == [message.id]


def test_a_completion_that_was_not_sent_yet_is_overtaken_by_who_was_quicker(rooms: Rooms, race: Race) -> None:
    ann, bob = rooms
    [message] = _claim(ann)
    first, second = race(ann, lambda: ann.complete(message), lambda: bob.cancel(message.id))
    assert isinstance(first.exception(60), ClaimLost)
    second.result(60)
    assert bob.get(message.id).state is State.CANCELLED


def test_who_completes_what_another_is_just_ending_waits_and_is_refused(rooms: Rooms, race: Race) -> None:
    ann, bob = rooms
    [message] = _claim(ann)
    first, second = race(bob, lambda: bob.cancel(message.id), lambda: ann.complete(message))
    first.result(60)
    assert isinstance(second.exception(60), ClaimLost)
    assert bob.get(message.id).state is State.CANCELLED
