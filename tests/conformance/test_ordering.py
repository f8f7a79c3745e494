"""Order: fifo by entry, priority by tier and score, deadline by deadline; equal ones by age, always."""

import pytest
from tests.conformance.helpers import bodies, events, one, refused

from postroom import Room, State
from postroom.clock import SECOND, ManualClock
from postroom.errors import InvalidField, MessageNotFound


async def test_fifo_is_the_order_of_entry_whatever_the_priority(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs")
    for n, priority in enumerate(["low", "critical", "normal", "background"]):
        await room.publish("jobs", n, priority=priority, deadline=clock.now() + (10 - n) * SECOND)
        clock.advance(0.5)
    assert await bodies(room, "jobs") == [0, 1, 2, 3]


async def test_fifo_holds_within_one_moment(room: Room) -> None:
    await room.create_queue("jobs")
    for n in range(50):
        await room.publish("jobs", n)
    assert await bodies(room, "jobs") == list(range(50))


async def test_priority_is_tier_then_score_then_age(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs", ordering="priority")
    for name, priority, score in (
        ("background", "background", 500),
        ("low", "low", 500),
        ("normal old", "normal", 500),
        ("normal young", "normal", 500),
        ("normal urgent", "normal", 501),
        ("critical", "critical", 0),
        ("high", "high", 250),
    ):
        await room.publish("jobs", name, priority=priority, score=score)
        clock.advance(1)
    assert await bodies(room, "jobs") == [
        "critical",
        "high",
        "normal urgent",
        "normal old",
        "normal young",
        "low",
        "background",
    ]


async def test_a_full_score_equals_the_next_tiers_floor_and_age_decides(
    room: Room, clock: ManualClock
) -> None:
    await room.create_queue("jobs", ordering="priority")
    await room.publish("jobs", "normal/1000", priority="normal", score=1000)
    clock.advance(1)
    await room.publish("jobs", "high/0", priority="high", score=0)
    await room.publish("jobs", "high/1", priority="high", score=1)
    assert await bodies(room, "jobs") == ["high/1", "normal/1000", "high/0"]


async def test_deadline_is_earliest_first_none_last_and_ties_by_age(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs", ordering="deadline")
    now = clock.now()
    await room.publish("jobs", "none, old")
    for name, seconds in (("late", 300), ("early", 100), ("tie, old", 200), ("tie, young", 200)):
        await room.publish("jobs", name, deadline=now + seconds * SECOND)
        clock.advance(1)
    await room.publish("jobs", "none, young", priority="critical")
    assert await bodies(room, "jobs") == [
        "early",
        "tie, old",
        "tie, young",
        "late",
        "none, old",
        "none, young",
    ]


@pytest.mark.parametrize("ordering", ["fifo", "priority", "deadline"])
async def test_what_comes_back_keeps_its_old_place(room: Room, clock: ManualClock, ordering: str) -> None:
    await room.create_queue("jobs", ordering=ordering, visibility_timeout_s=10)
    await room.publish_many("jobs", range(4))
    released, failed, snoozed, lapsed = await room.claim("jobs", limit=4)
    clock.advance(1)
    await room.publish("jobs", "younger")
    await room.release(released)
    await room.fail(failed, "again", delay=1)
    await room.snooze(snoozed, 2)
    assert lapsed.claim_expires_at is not None
    clock.set(lapsed.claim_expires_at)
    assert await bodies(room, "jobs") == [0, 1, 2, 3, "younger"]


async def test_a_delayed_message_takes_the_place_of_its_entry(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", "delayed", delay=5)
    clock.advance(1)
    await room.publish("jobs", "younger")
    clock.advance(4)
    assert await bodies(room, "jobs") == ["delayed", "younger"]


async def test_a_waiting_message_can_be_given_another_priority(room: Room) -> None:
    await room.create_queue("jobs", ordering="priority")
    receipts = await room.publish_many("jobs", ["a", "b", "c"])
    await room.reprioritise(receipts[2].id, tier="high")
    await room.reprioritise(receipts[1].id, score=501)
    assert await bodies(room, "jobs") == ["c", "b", "a"]
    message = await room.get(receipts[2].id)
    assert (message.priority_tier, message.priority_score) == ("high", 500)


async def test_a_delayed_message_can_be_given_another_priority_and_stays_delayed(
    room: Room, clock: ManualClock
) -> None:
    await room.create_queue("jobs", ordering="priority")
    receipt = await room.publish("jobs", "delayed", delay=5)
    await room.publish("jobs", "other")
    await room.reprioritise(receipt.id, tier="critical")
    assert (await room.get(receipt.id)).state is State.DELAYED
    clock.advance(5)
    assert await bodies(room, "jobs") == ["delayed", "other"]


@pytest.mark.parametrize("wrong", [{"tier": "urgent"}, {"score": -1}, {"score": 1001}, {"score": 1.5}])
async def test_a_bad_priority_is_refused(room: Room, wrong: dict[str, object]) -> None:
    await room.create_queue("jobs", ordering="priority")
    receipt = await room.publish("jobs", 1)
    async with refused(room, InvalidField, "priority"):
        await room.reprioritise(receipt.id, **wrong)  # type: ignore[arg-type]
    async with refused(room, MessageNotFound, "nobody"):
        await room.reprioritise("nobody", score=1)


async def test_a_new_ordering_gives_every_waiting_message_its_new_place(
    room: Room, clock: ManualClock
) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", "low", priority="low", deadline=clock.now() + 100 * SECOND)
    clock.advance(1)
    await room.publish("jobs", "high", priority="high", deadline=clock.now() + 300 * SECOND)
    await room.publish("jobs", "delayed", priority="critical", delay=5)
    clock.advance(5)
    for ordering, wanted in (
        ("priority", ["delayed", "high", "low"]),
        ("deadline", ["low", "high", "delayed"]),
        ("fifo", ["low", "high", "delayed"]),
    ):
        await room.update_queue("jobs", ordering=ordering)
        claimed = await room.claim("jobs", limit=None)
        assert [message.body for message in claimed] == wanted, ordering
        for message in claimed:
            await room.release(message)


async def test_a_claimed_message_takes_its_new_place_when_it_comes_back(room: Room) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", "high", priority="high")
    high = await one(room, "jobs")
    await room.update_queue("jobs", ordering="priority")
    await room.publish("jobs", "low", priority="low")
    await room.release(high)
    assert await bodies(room, "jobs") == ["high", "low"]


async def test_a_dead_letter_takes_its_new_place_when_it_is_replayed(room: Room) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", "low", priority="low")
    low = await one(room, "jobs")
    await room.fail(low, "dead", retry=False)
    await room.update_queue("jobs", ordering="priority")
    await room.publish("jobs", "high", priority="high")
    await room.replay(low.id)
    assert await bodies(room, "jobs") == ["high", "low"]


async def test_a_clock_that_jumps_back_disturbs_neither_order_nor_ledger(
    room: Room, clock: ManualClock
) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", "before")
    clock.advance(-3600)
    await room.publish("jobs", "after")
    times = [event.time for event in events(room)]
    assert times == sorted(times)
    assert await bodies(room, "jobs") == ["before", "after"]


async def test_a_clock_that_jumps_back_shortens_no_delay(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", "before")
    held = await one(room, "jobs")
    clock.advance(-3600)
    receipt = await room.publish("jobs", "delayed", delay=60)
    assert (await room.get(receipt.id)).state is State.DELAYED
    await room.snooze(held, 60)
    visible_at = (await room.get(held.id)).visible_at or 0
    assert visible_at >= (await room.head()).time + 60 * SECOND
