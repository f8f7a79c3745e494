"""Time bounds: not before its delay, not after its life; whoever comes first, the housekeeper or a claim."""

import pytest
from tests.conformance.helpers import bodies, counts, events_of, one, state_of

from postroom import Room, State
from postroom.clock import SECOND, ManualClock


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs", visibility_timeout_s=30)
    return room


async def test_a_delayed_message_is_not_claimable_before_its_time(jobs: Room, clock: ManualClock) -> None:
    receipt = await jobs.publish("jobs", 1, delay=10)
    assert receipt.state is State.DELAYED
    message = await jobs.get(receipt.id)
    assert message.visible_at == message.delay_until == clock.now() + 10 * SECOND
    clock.advance(9.999999)
    assert await jobs.claim("jobs") == []
    clock.advance(0.000001)
    assert (await one(jobs, "jobs")).id == receipt.id
    assert events_of(jobs, receipt.id) == ["published", "ready", "claimed"]


async def test_the_moment_of_visibility_may_be_named(jobs: Room, clock: ManualClock) -> None:
    await jobs.publish("jobs", 1, delay_until=clock.now() + 10 * SECOND)
    assert await jobs.claim("jobs") == []
    clock.advance(10)
    assert await bodies(jobs, "jobs") == [1]


async def test_a_delay_that_has_passed_is_none(jobs: Room, clock: ManualClock) -> None:
    for options in ({"delay": 0}, {"delay_until": clock.now()}, {"delay_until": clock.now() - SECOND}):
        receipt = await jobs.publish("jobs", 1, **options)  # type: ignore[arg-type]
        assert receipt.state is State.PENDING


async def test_the_housekeeper_makes_delayed_messages_pending_when_they_are_due(
    jobs: Room, clock: ManualClock
) -> None:
    early, late = [(await jobs.publish("jobs", 1, delay=delay)).id for delay in (10, 20)]
    clock.advance(10)
    assert await jobs.housekeep("visibility_timeout_enforcer") == 1
    assert await state_of(jobs, early) is State.PENDING
    assert await state_of(jobs, late) is State.DELAYED
    assert (await jobs.get(early)).visible_at is None
    assert await counts(jobs, "jobs") == {"pending": 1, "delayed": 1}


@pytest.mark.parametrize("by", ["housekeeper", "claim"])
async def test_a_message_expires_at_the_end_of_its_life(jobs: Room, clock: ManualClock, by: str) -> None:
    receipt = await jobs.publish("jobs", 1, ttl=10)
    assert (await jobs.get(receipt.id)).expires_at == clock.now() + 10 * SECOND
    clock.advance(9.999999)
    await jobs.housekeep("expiry_enforcer")
    assert await state_of(jobs, receipt.id) is State.PENDING
    clock.advance(0.000001)
    if by == "housekeeper":
        assert await jobs.housekeep("expiry_enforcer") == 1
    else:
        assert await jobs.claim("jobs") == []
    message = await jobs.get(receipt.id)
    assert (message.state, message.finished_at) == (State.EXPIRED, clock.now())
    assert await counts(jobs, "jobs") == {"expired": 1}
    assert events_of(jobs, receipt.id) == ["published", "expired"]


async def test_of_ttl_and_deadline_the_earlier_wins(jobs: Room, clock: ManualClock) -> None:
    now = clock.now()
    first = await jobs.publish("jobs", 1, ttl=10, deadline=now + 20 * SECOND)
    second = await jobs.publish("jobs", 1, ttl=20, deadline=now + 10 * SECOND)
    for receipt in (first, second):
        assert (await jobs.get(receipt.id)).expires_at == now + 10 * SECOND


async def test_a_deadline_bounds_the_life_of_a_message(jobs: Room, clock: ManualClock) -> None:
    receipt = await jobs.publish("jobs", 1, deadline=clock.now() + 5 * SECOND)
    clock.advance(5)
    assert await jobs.claim("jobs") == []
    assert await state_of(jobs, receipt.id) is State.EXPIRED


async def test_a_queue_may_give_its_messages_a_default_life(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs", default_ttl_s=10)
    default = await room.publish("jobs", "default")
    own = await room.publish("jobs", "own", ttl=20)
    clock.advance(10)
    assert await bodies(room, "jobs") == ["own"]
    assert await state_of(room, default.id) is State.EXPIRED
    assert (await room.get(own.id)).ttl_s == 20


async def test_a_delayed_message_expires_although_its_delay_has_not_ended(
    jobs: Room, clock: ManualClock
) -> None:
    receipt = await jobs.publish("jobs", 1, delay=60, ttl=10)
    clock.advance(10)
    assert await jobs.housekeep("expiry_enforcer") == 1
    assert await state_of(jobs, receipt.id) is State.EXPIRED


async def test_a_claimed_message_is_not_touched_by_expiry(jobs: Room, clock: ManualClock) -> None:
    receipt = await jobs.publish("jobs", 1, ttl=10)
    message = await one(jobs, "jobs")
    clock.advance(20)
    assert await jobs.housekeep("expiry_enforcer") == 0
    await jobs.complete(message)
    assert await state_of(jobs, receipt.id) is State.COMPLETED


@pytest.mark.parametrize("how", ["release", "fail", "snooze", "lease"])
async def test_what_comes_back_after_its_life_expires_and_is_never_handed_out(
    jobs: Room, clock: ManualClock, how: str
) -> None:
    receipt = await jobs.publish("jobs", 1, ttl=10)
    message = await one(jobs, "jobs")
    clock.advance(20)
    if how == "release":
        await jobs.release(message)
    elif how == "fail":
        await jobs.fail(message, "late", delay=0)
    elif how == "snooze":
        await jobs.snooze(message, 1000)
    else:
        clock.advance(20)
    assert await jobs.claim("jobs") == []
    await jobs.housekeep("expiry_enforcer")
    assert await state_of(jobs, receipt.id) is State.EXPIRED


async def test_an_expired_message_does_not_hide_the_next_one(jobs: Room, clock: ManualClock) -> None:
    for n in range(3):
        await jobs.publish("jobs", n, ttl=10)
    await jobs.publish("jobs", "fresh")
    clock.advance(10)
    assert await bodies(jobs, "jobs", limit=1) == ["fresh"]


async def test_more_than_one_step_of_messages_may_come_due_at_once(jobs: Room, clock: ManualClock) -> None:
    await jobs.publish_many("jobs", range(1100), delay=1)
    await jobs.publish_many("jobs", range(1100), ttl=1)
    clock.advance(1)
    assert await jobs.housekeep("visibility_timeout_enforcer") == 2200
    assert await counts(jobs, "jobs") == {"pending": 1100, "expired": 1100}


async def test_messages_of_a_paused_queue_still_expire_and_come_due(jobs: Room, clock: ManualClock) -> None:
    ready = await jobs.publish("jobs", 1, delay=1)
    expired = await jobs.publish("jobs", 1, ttl=1)
    await jobs.set_queue_state("jobs", "paused")
    clock.advance(1)
    await jobs.housekeep("visibility_timeout_enforcer")
    assert await state_of(jobs, ready.id) is State.PENDING
    assert await state_of(jobs, expired.id) is State.EXPIRED


async def test_a_clock_that_was_put_back_stops_neither_leases_nor_delays(
    jobs: Room, clock: ManualClock
) -> None:
    """Else a clock that was once an hour ahead leaves the messages of dead workers lying for an hour."""
    clock.advance(3600)
    await jobs.publish("jobs", "claimed")
    clock.advance(-3600)
    await jobs.publish("jobs", "delayed", delay=10)
    await jobs.publish("jobs", "short-lived", ttl=10)
    await one(jobs, "jobs")
    clock.advance(31)
    assert await bodies(jobs, "jobs") == ["claimed", "delayed"]
    assert await counts(jobs, "jobs") == {"claimed": 2, "expired": 1}
