"""Readers list live and archived messages alike, by what the filter names."""

import pytest
from tests.stores.memory.room import Room

from postroom.kernel import commands as c
from postroom.kernel.housekeeping import housekeepers
from postroom.kernel.ledger import Folded
from postroom.kernel.states import State

HOUR = 3600


@pytest.fixture
def listed(room: Room) -> Room:
    """Bodies 0 to 5 in the order of entry: 0 archived, 1 completed, the others pending."""
    room.queue("a")
    room.queue("b")
    room.publish("a", 0, agent="coder")
    room.complete(*room.claim("a"))
    room.clock.advance(2 * HOUR)
    room.do(c.Housekeep(name=housekeepers.ARCHIVER))
    room.publish("a", 1, channel="web")
    room.complete(*room.claim("a"))
    room.publish("b", 2, labels={"n": 1, "done": True}, message_type="note")
    room.publish("a", 3, correlation_id="talk", causation_id="why", parent_id="up")
    room.publish("b", 4, sender_id="ann", labels={"n": 2})
    room.clock.advance(1)
    room.publish("a", 5, correlation_id="talk")
    return room


def test_all_come_in_the_order_of_entry_archived_or_not(listed: Room) -> None:
    assert listed.bodies() == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert [stored.archived for stored in listed.page()] == [True, False, False, False, False, False]


def test_pages_go_on_after_a_number_and_newest_first_before_it(listed: Room) -> None:
    first = listed.page(limit=2)
    assert [s.content.body for s in listed.page(after=first[-1].row.seq, limit=2)] == [b"2", b"3"]
    newest = listed.page(limit=2, newest_first=True)
    assert [s.content.body for s in newest] == [b"5", b"4"]
    older = listed.page(after=newest[-1].row.seq, limit=2, newest_first=True)
    assert [s.content.body for s in older] == [b"3", b"2"]
    assert listed.page(limit=0) == []


@pytest.mark.parametrize(
    ("wanted", "bodies"),
    [
        ({"scope": "s"}, [0, 1, 2, 3, 4, 5]),
        ({"scope": "nowhere"}, []),
        ({"queue": "s/b"}, [2, 4]),
        ({"queue": "s/nothing"}, []),
        ({"scope": "default", "queue": "s/b"}, []),
        ({"tenant": "other"}, []),
        ({"states": ("completed",)}, [0, 1]),
        ({"states": ("completed", "pending"), "queue": "s/a"}, [0, 1, 3, 5]),
        ({"message_type": "note"}, [2]),
        ({"correlation_id": "talk"}, [3, 5]),
        ({"causation_id": "why"}, [3]),
        ({"parent_id": "up"}, [3]),
        ({"agent": "coder"}, [0]),
        ({"channel": "web"}, [1]),
        ({"sender_id": "ann"}, [4]),
        ({"labels": (("n", 1),)}, [2]),
        ({"labels": (("n", 1), ("done", True))}, [2]),
        ({"labels": (("n", True),)}, []),
        ({"labels": (("missing", None),)}, []),
        ({"correlation_id": "talk", "parent_id": "up"}, [3]),
    ],
)
def test_everything_a_filter_names_must_hold(listed: Room, wanted: dict, bodies: list[int]) -> None:
    assert listed.bodies(**wanted) == [str(n).encode() for n in bodies]


def test_times_of_entry_bound_a_list_without_being_in_it(listed: Room) -> None:
    last = listed.clock.now()
    assert listed.bodies(created_after=last - 1) == [b"5"]
    assert listed.bodies(created_after=last) == []
    assert listed.bodies(created_before=last, queue="s/a") == [b"0", b"1", b"3"]


def test_deliveries_are_hidden_unless_asked_for(room: Room) -> None:
    room.queue("news", consumer_mode="broadcast")
    for name in ("ann", "bob"):
        room.do(c.Subscribe(queue="s/news", name=name))
    room.publish("news", "hello")
    (claimed,) = room.claim("news", subscription="bob")
    assert len(room.page()) == 1
    assert len(room.page(deliveries=True)) == 3
    assert [stored.row.id for stored in room.page(subscription="bob")] == [claimed.row.id]
    assert room.page(subscription="nobody") == []


def test_messages_of_a_deleted_queue_stay_listed_and_keep_its_name(room: Room) -> None:
    room.queue("gone")
    (message_id,) = room.publish("gone", 1)
    room.complete(*room.claim("gone"))
    room.do(c.DeleteQueue(queue="s/gone"))
    with room.store.reader() as reader:
        assert reader.folded() == {message_id: Folded("s/gone", State.COMPLETED, 1)}
        stored = reader.get(message_id)
        assert stored is not None
        assert stored.archived
        assert reader.queue_names()[stored.row.queue_id] == ("s", "gone")
        assert reader.queue("default", "s", "gone") is None
    assert len(room.page(scope="s")) == 1
    assert room.page(queue="s/gone") == []


def test_records_are_listed_by_kind_and_key_after_a_number(room: Room) -> None:
    for key in ("a", "b", "a"):
        room.do(c.AddRecord(kind="turn", key=key, data={"key": key}))
    room.do(c.AddRecord(kind="cost", key="a", data={"usd": 1}))
    with room.store.reader() as reader:
        assert [record.id for record in reader.records("default", "turn", None, 0, 10)] == [1, 2, 3]
        assert [record.id for record in reader.records("default", "turn", "a", 1, 10)] == [3]
        assert [record.id for record in reader.records("default", "turn", None, 0, 1)] == [1]
        assert reader.records("default", "cost", None, 0, 10)[0].data == {"usd": 1}


def test_a_leader_is_one_until_its_lease_ends(room: Room) -> None:
    assert room.do(c.Lead(name="x", holder="a", seconds=10)) is True
    assert room.do(c.Lead(name="x", holder="b", seconds=10)) is False
    with room.store.reader() as reader:
        assert reader.leader("x", room.clock.now()) == "a"
    assert room.do(c.Lead(name="x", holder="a", seconds=0)) is False
    with room.store.reader() as reader:
        assert reader.leader("x", room.clock.now()) is None
    assert room.do(c.Lead(name="x", holder="b", seconds=10)) is True
