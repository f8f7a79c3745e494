"""Messages come in the order of their line, and what is due comes earliest first."""

from tests.stores.memory.room import Room

from postroom.clock import SECOND
from postroom.kernel import commands as c


def claimed_bodies(room: Room, slug: str, limit: int = 100) -> list[bytes | None]:
    return [stored.content.body for stored in room.claim(slug, limit)]


def test_equal_messages_come_in_the_order_of_entry(room: Room) -> None:
    room.queue("work")
    room.publish("work", *range(100))
    assert claimed_bodies(room, "work") == [str(n).encode() for n in range(100)]


def test_the_more_urgent_comes_first(room: Room) -> None:
    room.queue("work", ordering="priority")
    for score in (10, 900, 500, 900):
        room.publish("work", score, priority_score=score)
    room.publish("work", "critical", priority_tier="critical", priority_score=0)
    assert claimed_bodies(room, "work") == [b'"critical"', b"900", b"900", b"500", b"10"]


def test_the_earlier_deadline_comes_first_and_none_last(room: Room) -> None:
    room.queue("work", ordering="deadline")
    room.publish("work", "none")
    for seconds in (30, 10, 20):
        room.publish("work", seconds, deadline=room.clock.now() + seconds * SECOND)
    assert claimed_bodies(room, "work") == [b"10", b"20", b"30", b'"none"']


def test_what_is_given_back_has_its_place_again(room: Room) -> None:
    room.queue("work")
    room.publish("work", *range(200))
    for _ in range(3):
        for stored in reversed(room.claim("work", 150)):
            room.do(c.Release(message_id=stored.row.id, token=stored.row.token or ""))
    assert claimed_bodies(room, "work", 200) == [str(n).encode() for n in range(200)]


def test_a_new_order_holds_for_what_waits(room: Room) -> None:
    room.queue("work")
    for score in (1, 3, 2):
        room.publish("work", score, priority_score=score)
    room.do(c.UpdateQueue(queue="s/work", settings={"ordering": "priority"}))
    assert claimed_bodies(room, "work") == [b"3", b"2", b"1"]


def test_what_is_due_comes_earliest_first_and_not_before_its_time(room: Room) -> None:
    room.queue("work")
    now = room.clock.now()
    for seconds in (30, 10, 20):
        room.publish("work", seconds, delay_until=now + seconds * SECOND)
    tx = room.store.begin()
    assert tx.next_due() == now + 10 * SECOND
    assert tx.due(now + 10 * SECOND - 1, 10) == []
    due = [row.due_at for row in tx.due(now + 20 * SECOND, 10)]
    assert due == [now + 10 * SECOND, now + 20 * SECOND]
    assert [row.due_at for row in tx.due(now + 30 * SECOND, 1)] == [now + 10 * SECOND]
    room.store.rollback(tx)


def test_only_what_waits_long_in_a_priority_queue_ages_and_only_to_the_cap(room: Room) -> None:
    room.queue("plain")
    room.queue("one", ordering="priority")
    room.queue("two", ordering="priority")
    for score in (10, 20):
        for slug in ("two", "plain", "one"):
            room.publish(slug, slug, priority_score=score)
    now = room.clock.now()
    room.clock.advance(1)
    room.publish("one", "young", priority_score=1)
    tx = room.store.begin()
    assert [(row.seq, row.priority_score) for row in tx.aging(now, 20, 0, 9)] == [(1, 10), (3, 10)]
    assert [row.seq for row in tx.aging(now, 21, 1, 2)] == [3, 4]
    assert tx.aging(now - 1, 1000, 0, 9) == []
    room.store.rollback(tx)


def test_nothing_is_due_in_an_empty_room(room: Room) -> None:
    with room.store.reader() as reader:
        assert reader.next_due() is None


def test_a_line_nobody_wrote_to_is_empty(room: Room) -> None:
    with room.store.reader() as reader:
        assert reader.peek(4711, 10) == []


def test_children_of_a_message_are_not_its_deliveries(room: Room) -> None:
    news = room.queue("news", consumer_mode="broadcast")
    room.do(c.Subscribe(queue="s/news", name="ann"))
    (parent,) = room.publish("news", "to all")
    room.publish("news", "an answer", parent_id=parent)
    tx = room.store.begin()
    assert tx.open_deliveries(parent) == 1
    assert [row.subscription_id is not None for row in tx.deliveries(parent)] == [True]
    assert [stored.content.body for stored in tx.originals(news)] == [b'"to all"', b'"an answer"']
    room.store.rollback(tx)
