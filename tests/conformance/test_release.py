"""Release: given back untouched, in its old place, without counting an attempt."""

import pytest
from tests.conformance.helpers import bodies, counts, events_of, one
from tests.conftest import OpenRoom

from postroom import Limits, Room, State
from postroom.clock import ManualClock


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs", max_retries=2)
    return room


async def test_a_released_message_can_be_claimed_at_once_and_the_attempt_does_not_count(jobs: Room) -> None:
    receipt = await jobs.publish("jobs", 1)
    await jobs.release(await one(jobs, "jobs"))
    back = await jobs.get(receipt.id)
    assert (back.state, back.attempts) == (State.PENDING, 0)
    assert (back.claimed_by, back.claimed_at, back.claim_expires_at) == (None, None, None)
    assert (await one(jobs, "jobs")).attempts == 1
    assert events_of(jobs, receipt.id) == ["published", "claimed", "released", "claimed"]


async def test_a_released_message_keeps_its_place(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(4))
    first, second = await jobs.claim("jobs", limit=2)
    await jobs.release(second)
    await jobs.release(first)
    assert await bodies(jobs, "jobs") == [0, 1, 2, 3]


async def test_releasing_is_not_failing(jobs: Room) -> None:
    receipt = await jobs.publish("jobs", 1)
    for _ in range(10):
        await jobs.release(await one(jobs, "jobs"))
    message = await jobs.get(receipt.id)
    assert (message.state, message.failure_reason) == (State.PENDING, None)


async def test_releasing_keeps_the_attempts_that_counted(jobs: Room) -> None:
    receipt = await jobs.publish("jobs", 1)
    await jobs.fail(await one(jobs, "jobs"), "once", delay=0)
    await jobs.release(await one(jobs, "jobs"))
    message = await jobs.get(receipt.id)
    assert (message.attempts, message.failure_reason) == (1, "once")


async def test_a_message_cannot_be_passed_round_for_ever(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(limits=Limits(claims_per_message=3)) as room:
        await room.create_queue("jobs")
        receipt = await room.publish("jobs", 1)
        await room.release(await one(room, "jobs"))
        await room.snooze(await one(room, "jobs"), 1)
        clock.advance(1)
        await room.release(await one(room, "jobs"))
        message = await room.get(receipt.id)
        assert (message.state, message.failure_kind) == (State.DEAD, "worn_out")
        assert "3 times" in (message.failure_reason or "")
        assert await counts(room, "_dead_letter") == {"dead": 1}
