"""Reading: pages of messages by any filter, live and archived alike, and what would be claimed next."""

from typing import Any

import pytest
from tests.conformance.helpers import dead_letter, one, refused

from postroom import Message, Room
from postroom.clock import SECOND, ManualClock
from postroom.errors import InvalidField, MessageNotFound, SubscriptionNotFound


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs")
    return room


async def _found(room: Room, **wanted: Any) -> list[Any]:
    page = await room.messages(**wanted)
    assert page.next_cursor is None
    return [message.body for message in page.messages]


@pytest.mark.parametrize("newest_first", [False, True])
async def test_pages_lead_through_everything_once(jobs: Room, newest_first: bool) -> None:
    await jobs.publish_many("jobs", range(25))
    seen: list[Any] = []
    sizes: list[int] = []
    cursor = None
    while True:
        page = await jobs.messages(queue="jobs", cursor=cursor, limit=10, newest_first=newest_first)
        seen += [message.body for message in page.messages]
        sizes.append(len(page.messages))
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sizes == [10, 10, 5]
    assert seen == list(reversed(range(25)) if newest_first else range(25))


async def test_a_full_last_page_has_no_successor(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(10))
    page = await jobs.messages(queue="jobs", limit=10)
    assert len(page.messages) == 10
    assert page.next_cursor is None


async def test_what_is_published_meanwhile_neither_hides_nor_repeats_anything(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(4))
    page = await jobs.messages(queue="jobs", limit=2)
    await jobs.publish("jobs", 4)
    await jobs.complete(await one(jobs, "jobs"))
    rest = await jobs.messages(queue="jobs", limit=10, cursor=page.next_cursor)
    assert [message.body for message in rest.messages] == [2, 3, 4]


async def test_live_and_archived_messages_are_one_list(jobs: Room, clock: ManualClock) -> None:
    await jobs.publish_many("jobs", range(6))
    for message in (await jobs.claim("jobs", limit=6))[::2]:
        await jobs.complete(message)
    clock.advance(3601)
    assert await jobs.housekeep("message_archiver") == 3
    pages: list[Message] = []
    cursor = None
    for _ in range(3):
        page = await jobs.messages(queue="jobs", limit=2, cursor=cursor)
        pages += page.messages
        cursor = page.next_cursor
    assert [message.body for message in pages] == list(range(6))
    assert [message.archived for message in pages] == [True, False] * 3


async def test_every_filter_finds_what_fits_and_nothing_else(room: Room, clock: ManualClock) -> None:
    await room.create_scope("office")
    for path in ("jobs", "office/jobs"):
        await room.create_queue(path)
    told: dict[str, Any] = {
        "type": "order",
        "correlation_id": "talk",
        "causation_id": "cause",
        "parent_id": "parent",
        "agent": "coder",
        "channel": "telegram",
        "sender_id": "42",
        "labels": {"tier": "gold", "n": 1},
    }
    await room.publish("jobs", "plain")
    clock.advance(1)
    middle = clock.now()
    await room.publish("jobs", "told", **told)
    clock.advance(1)
    await room.publish("office/jobs", "office")
    filters: dict[str, Any] = {
        "message_type": "order",
        **{name: told[name] for name in told if name not in ("type", "labels")},
    }
    for name, value in filters.items():
        assert await _found(room, **{name: value}) == ["told"], name
        assert await _found(room, **{name: "other"}) == [], name
    assert await _found(room, scope="office") == ["office"]
    assert await _found(room, queue="jobs") == ["plain", "told"]
    assert await _found(room, created_after=middle - 1) == ["told", "office"]
    assert await _found(room, created_before=middle + 1) == ["plain", "told"]
    assert await _found(room, labels={"tier": "gold"}) == ["told"]
    assert await _found(room, labels={"tier": "gold", "n": 1}) == ["told"]
    assert await _found(room, labels={"tier": "gold", "n": 2}) == []
    assert await _found(room, **filters, labels=told["labels"], queue="jobs", state="pending") == ["told"]


async def test_states_filter_one_or_several(jobs: Room) -> None:
    await jobs.publish("jobs", "claimed")
    await one(jobs, "jobs")
    await jobs.publish("jobs", "pending")
    await jobs.publish("jobs", "delayed", delay=60)
    await dead_letter(jobs, "jobs", "dead")
    assert await _found(jobs, state="claimed") == ["claimed"]
    assert await _found(jobs, state=("pending", "delayed")) == ["pending", "delayed"]
    assert await _found(jobs, state="dead") == ["dead"]
    assert await _found(jobs, queue="_dead_letter") == ["dead"]


async def test_a_queue_and_a_scope_that_contradict_each_other_find_nothing(room: Room) -> None:
    await room.create_scope("office")
    await room.create_queue("jobs")
    await room.publish("jobs", 1)
    assert await _found(room, queue="jobs", scope="default") == [1]
    assert await _found(room, queue="jobs", scope="office") == []


LABELS: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"n": 1}, {"n": 1}, True),
    ({"n": 1}, {"n": 1.0}, True),
    ({"n": 1}, {"n": "1"}, False),
    ({"n": "1"}, {"n": 1}, False),
    ({"n": True}, {"n": True}, True),
    ({"n": True}, {"n": 1}, False),
    ({"n": 1}, {"n": True}, False),
    ({"n": False}, {"n": 0}, False),
    ({"n": None}, {"n": None}, True),
    ({"m": 1}, {"n": None}, False),
    ({}, {"n": None}, False),
    ({"n": "true"}, {"n": True}, False),
    ({'a"b': 1}, {'a"b': 1}, True),
    ({"a.b": 1}, {"a.b": 1}, True),
    ({"a": 1}, {"a.b": 1}, False),
    ({"a\\": 1}, {"a\\": 1}, True),
    ({"$[0]": 1}, {"$[0]": 1}, True),
    ({"Zoë ☂": "ß"}, {"Zoë ☂": "ß"}, True),
    ({"n": 2**60}, {"n": 2**60}, True),
    ({"n": 2**60 + 1}, {"n": 2**60}, False),
]


async def test_labels_are_found_by_name_and_value_exactly(jobs: Room) -> None:
    wrong = []
    for number, (labels, wanted, found) in enumerate(LABELS):
        await jobs.publish("jobs", number, labels=labels, correlation_id=f"case {number}")
        page = await jobs.messages(labels=wanted, correlation_id=f"case {number}")
        if bool(page.messages) is not found:
            wrong.append((labels, wanted, found))
    assert not wrong


async def test_deliveries_are_listed_only_when_asked_for(room: Room) -> None:
    await room.create_queue("news", consumer_mode="broadcast")
    for name in ("ann", "bob"):
        await room.subscribe("news", name)
    await room.publish("news", 1)
    assert len(await _found(room, queue="news")) == 1
    assert len(await _found(room, queue="news", deliveries=True)) == 3
    page = await room.messages(queue="news", subscription="bob")
    assert [message.subscription for message in page.messages] == ["bob"]


async def test_a_whole_conversation_is_found_in_order_over_all_queues(room: Room) -> None:
    for name in ("a", "b", "c"):
        await room.create_queue(name)
    await room.publish("a", 1, correlation_id="talk")
    await room.publish("b", 2, caused_by=await one(room, "a"))
    await room.publish("c", "other")
    await room.publish("c", 3, caused_by=await one(room, "b"))
    assert await _found(room, correlation_id="talk") == [1, 2, 3]


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"limit": -1},
        {"limit": 1001},
        {"cursor": ""},
        {"cursor": "-1"},
        {"cursor": "next"},
        {"cursor": "9" * 30},
        {"nonsense": 1},
        {"tenant": "other"},
        {"state": "nonsense"},
        {"state": ("pending", "nonsense")},
    ],
    ids=repr,
)
async def test_a_listing_out_of_bounds_is_refused(jobs: Room, wrong: dict[str, Any]) -> None:
    async with refused(jobs, InvalidField):
        await jobs.messages(**wrong)


async def test_ids_that_cannot_be_are_simply_not_found(jobs: Room) -> None:
    for message_id in ("\ud83d", "x" * 10_000, "a\x00b"):
        with pytest.raises(MessageNotFound):
            await jobs.get(message_id)


async def test_peeking_shows_what_would_be_claimed_next_and_changes_nothing(room: Room) -> None:
    await room.create_queue("jobs", ordering="priority")
    await room.publish("jobs", "low", priority="low")
    await room.publish("jobs", "high", priority="high")
    await room.publish("jobs", "delayed", delay=60)
    head = await room.head()
    assert [message.body for message in await room.peek("jobs")] == ["high", "low"]
    assert [message.body for message in await room.peek("jobs", 1)] == ["high"]
    assert await room.head() == head
    peeked = (await room.peek("jobs"))[0]
    assert (peeked.attempts, peeked.claim_token) == (0, None)
    assert (await one(room, "jobs")).id == peeked.id


async def test_peeking_at_a_broadcast_is_peeking_for_a_subscriber(room: Room) -> None:
    await room.create_queue("news", consumer_mode="broadcast")
    await room.subscribe("news", "ann")
    await room.publish("news", 1)
    [delivery] = await room.peek("news", subscription="ann")
    assert (await one(room, "news", subscription="ann")).id == delivery.id
    for nobody in (None, "nobody"):
        async with refused(room, SubscriptionNotFound):
            await room.peek("news", subscription=nobody)


@pytest.mark.parametrize("limit", [0, -1])
async def test_peeking_at_less_than_one_is_refused(jobs: Room, limit: int) -> None:
    await jobs.publish_many("jobs", range(3))
    async with refused(jobs, InvalidField, "limit"):
        await jobs.peek("jobs", limit)


async def test_a_competing_queue_has_no_subscribers_to_read_for(jobs: Room) -> None:
    for read in (jobs.peek, jobs.counts):
        with pytest.raises((InvalidField, SubscriptionNotFound)):
            await read("jobs", subscription="ann")


async def test_moments_of_a_message_tell_its_life(jobs: Room, clock: ManualClock) -> None:
    start = clock.now()
    receipt = await jobs.publish("jobs", 1)
    clock.advance(1)
    message = await one(jobs, "jobs")
    clock.advance(1)
    await jobs.complete(message)
    done = await jobs.get(receipt.id)
    assert (done.created_at, done.finished_at) == (start, start + 2 * SECOND)
