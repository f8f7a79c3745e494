"""Depth: a queue with a limit refuses, drops its oldest, or sends the new ones to the dead letters."""

import asyncio

import pytest
from tests.conformance.helpers import bodies, counts, events_of, one, refused, state_of

from postroom import Room, State
from postroom.clock import ManualClock
from postroom.errors import QueueFull


async def test_a_full_queue_refuses_and_says_so(room: Room) -> None:
    await room.create_queue("jobs", max_depth=2)
    await room.publish_many("jobs", [1, 2])
    async with refused(room, QueueFull, "default/jobs", "holds 2"):
        await room.publish("jobs", 3)


async def test_a_batch_that_would_overflow_is_refused_whole(room: Room) -> None:
    await room.create_queue("jobs", max_depth=2)
    await room.publish("jobs", 1)
    async with refused(room, QueueFull):
        await room.publish_many("jobs", [2, 3])


async def test_delayed_messages_count_and_claimed_ones_do_not(room: Room) -> None:
    await room.create_queue("jobs", max_depth=2)
    await room.publish("jobs", 1)
    await room.publish("jobs", 2, delay=60)
    async with refused(room, QueueFull):
        await room.publish("jobs", 3)
    await one(room, "jobs")
    await room.publish("jobs", 3)


async def test_concurrent_publishers_together_never_exceed_the_limit(room: Room) -> None:
    await room.create_queue("jobs", max_depth=5)
    outcomes = await asyncio.gather(*(room.publish("jobs", n) for n in range(20)), return_exceptions=True)
    assert sum(isinstance(outcome, QueueFull) for outcome in outcomes) == 15
    assert await counts(room, "jobs") == {"pending": 5}


async def test_a_raised_limit_takes_messages_again(room: Room) -> None:
    await room.create_queue("jobs", max_depth=1)
    await room.publish("jobs", 1)
    await room.update_queue("jobs", max_depth=2)
    await room.publish("jobs", 2)
    await room.update_queue("jobs", max_depth=None)
    await room.publish_many("jobs", range(10))


async def test_a_queue_of_depth_zero_takes_nothing(room: Room) -> None:
    await room.create_queue("jobs", max_depth=0)
    async with refused(room, QueueFull):
        await room.publish("jobs", 1)


async def test_dropping_the_oldest_makes_room_for_the_newest(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs", max_depth=2, overflow_policy="drop_oldest")
    receipts = await room.publish_many("jobs", [1, 2])
    clock.advance(1)
    newest = await room.publish("jobs", 3)
    assert newest.state is State.PENDING
    dropped = await room.get(receipts[0].id)
    assert (dropped.state, dropped.failure_kind, dropped.origin_queue) == (State.DEAD, "overflow", "jobs")
    assert "full" in (dropped.failure_reason or "")
    assert await bodies(room, "jobs") == [2, 3]
    assert events_of(room, dropped.id) == ["published", "dead_lettered"]


@pytest.mark.parametrize("policy", ["drop_oldest", "dead_letter"])
async def test_a_batch_larger_than_the_queue_leaves_it_exactly_full(room: Room, policy: str) -> None:
    await room.create_queue("jobs", max_depth=3, overflow_policy=policy)
    await room.publish_many("jobs", ["old"])
    receipts = await room.publish_many("jobs", range(10))
    assert await counts(room, "jobs") == {"pending": 3}
    assert (await room.counts("_dead_letter")).dead == 8
    for receipt in receipts:
        assert await state_of(room, receipt.id) is receipt.state, "the answer tells what became of it"
    kept = [n for n, receipt in enumerate(receipts) if receipt.state is State.PENDING]
    assert await bodies(room, "jobs") == (["old", *kept] if policy == "dead_letter" else kept)


async def test_what_overflows_may_go_to_the_dead_letters(room: Room) -> None:
    await room.create_queue("jobs", max_depth=1, overflow_policy="dead_letter")
    await room.publish("jobs", 1)
    refused_one = await room.publish("jobs", 2)
    assert refused_one.state is State.DEAD
    message = await room.get(refused_one.id)
    assert (message.queue, message.origin_queue, message.failure_kind) == ("_dead_letter", "jobs", "overflow")
    assert events_of(room, refused_one.id) == ["published"]
    await room.replay(refused_one.id)
    assert await bodies(room, "jobs") == [1, 2]


async def test_the_oldest_is_the_one_that_entered_first_whatever_its_priority_or_delay(
    room: Room, clock: ManualClock
) -> None:
    await room.create_queue("jobs", max_depth=2, overflow_policy="drop_oldest", ordering="priority")
    delayed = await room.publish("jobs", "delayed", delay=60)
    important = await room.publish("jobs", "important", priority="critical")
    await room.publish("jobs", "low", priority="background")
    assert await state_of(room, delayed.id) is State.DEAD
    assert await state_of(room, important.id) is State.PENDING
    assert await bodies(room, "jobs") == ["important", "low"]


async def test_what_is_claimed_is_never_dropped(room: Room) -> None:
    await room.create_queue("jobs", max_depth=1, overflow_policy="drop_oldest")
    await room.publish("jobs", "claimed")
    held = await one(room, "jobs")
    await room.publish_many("jobs", ["old", "new"])
    await room.complete(held)
    assert await bodies(room, "jobs") == ["new"]


async def test_dropping_a_broadcast_drops_it_for_every_subscriber(room: Room) -> None:
    await room.create_queue("news", consumer_mode="broadcast", max_depth=1, overflow_policy="drop_oldest")
    await room.subscribe("news", "ann")
    dropped = await room.publish("news", "old")
    await room.publish("news", "new")
    assert await state_of(room, dropped.id) is State.DEAD
    assert await bodies(room, "news", subscription="ann") == ["new"]


async def test_a_broadcast_that_overflowed_reaches_its_subscribers_when_it_is_replayed(room: Room) -> None:
    await room.create_queue("news", consumer_mode="broadcast", max_depth=1, overflow_policy="dead_letter")
    await room.subscribe("news", "ann")
    await room.publish("news", 1)
    over = await room.publish("news", 2)
    await room.complete(await one(room, "news", subscription="ann"))
    await room.replay(over.id)
    assert await bodies(room, "news", subscription="ann") == [2]


async def test_an_overflowing_message_keeps_its_key(room: Room) -> None:
    await room.create_queue("jobs", max_depth=0, overflow_policy="dead_letter")
    first = await room.publish("jobs", 1, key="k")
    again = await room.publish("jobs", 1, key="k")
    assert (again.id, again.created, again.state) == (first.id, False, State.DEAD)
