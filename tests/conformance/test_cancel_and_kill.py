"""Cancel and kill: an open message is ended from outside; the holder learns of it at its next call."""

import pytest
from tests.conformance.helpers import LONE_SURROGATE, counts, dead_letter, events, events_of, one, refused

from postroom import Room, State
from postroom.clock import ManualClock
from postroom.errors import ClaimLost, MessageNotFound, WrongState


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs")
    return room


async def _open_messages(room: Room) -> list[str]:
    """One pending, one delayed, one claimed."""
    claimed = await room.publish("jobs", "claimed")
    await one(room, "jobs")
    pending = await room.publish("jobs", "pending")
    delayed = await room.publish("jobs", "delayed", delay=60)
    return [pending.id, delayed.id, claimed.id]


async def test_every_open_message_can_be_cancelled_and_never_comes_back(
    jobs: Room, clock: ManualClock
) -> None:
    for message_id in await _open_messages(jobs):
        await jobs.cancel(message_id, "no longer wanted")
        message = await jobs.get(message_id)
        assert (message.state, message.failure_reason) == (State.CANCELLED, "no longer wanted")
        assert message.finished_at == clock.now()
        assert events_of(jobs, message_id)[-1] == "cancelled"
    assert await counts(jobs, "jobs") == {"cancelled": 3}
    clock.advance(3600)
    assert await jobs.claim("jobs", limit=None) == []


async def test_every_open_message_can_be_killed_and_becomes_a_dead_letter(
    jobs: Room, clock: ManualClock
) -> None:
    for message_id in await _open_messages(jobs):
        await jobs.kill(message_id, "hop limit")
        message = await jobs.get(message_id)
        assert (message.state, message.queue, message.origin_queue) == (State.DEAD, "_dead_letter", "jobs")
        assert (message.failure_reason, message.failure_kind) == ("hop limit", "guard")
        assert events_of(jobs, message_id)[-1] == "dead_lettered"
    assert await counts(jobs, "jobs") == {}
    assert await counts(jobs, "_dead_letter") == {"dead": 3}
    clock.advance(3600)
    assert await jobs.claim("jobs", limit=None) == []


async def test_the_holder_of_an_ended_message_learns_why(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(2))
    cancelled, killed = await jobs.claim("jobs", limit=2)
    await jobs.cancel(cancelled.id)
    await jobs.kill(killed.id, "guard")
    async with refused(jobs, ClaimLost, "cancelled"):
        await jobs.complete(cancelled)
    async with refused(jobs, ClaimLost, "dead"):
        await jobs.complete(killed)


async def test_what_has_ended_cannot_be_ended_again(jobs: Room, clock: ManualClock) -> None:
    done = await jobs.publish("jobs", 1)
    await jobs.complete(await one(jobs, "jobs"))
    cancelled = await jobs.publish("jobs", 1)
    await jobs.cancel(cancelled.id)
    expired = await jobs.publish("jobs", 1, ttl=1)
    clock.advance(1)
    await jobs.housekeep("expiry_enforcer")
    dead = await dead_letter(jobs, "jobs")
    for message_id, state in ((done.id, "completed"), (cancelled.id, "cancelled"), (expired.id, "expired")):
        async with refused(jobs, WrongState, state, "cannot be cancelled"):
            await jobs.cancel(message_id)
    for message_id in (done.id, cancelled.id, expired.id, dead):
        async with refused(jobs, WrongState, message_id):
            await jobs.kill(message_id, "again")
    async with refused(jobs, WrongState, "dead"):
        await jobs.cancel(dead)


async def test_what_never_was_cannot_be_ended(jobs: Room) -> None:
    async with refused(jobs, MessageNotFound, "nobody"):
        await jobs.cancel("nobody")
    async with refused(jobs, MessageNotFound, "nobody"):
        await jobs.kill("nobody", "why")


async def test_a_reason_is_never_refused_only_cut(jobs: Room) -> None:
    for reason in (LONE_SURROGATE, "x" * 100_000):
        receipts = await jobs.publish_many("jobs", [1, 2])
        await jobs.cancel(receipts[0].id, reason)
        await jobs.kill(receipts[1].id, reason)
        for receipt in receipts:
            assert 0 < len((await jobs.get(receipt.id)).failure_reason or "") <= 8192
    assert all(len(event.data) < 1000 for event in events(jobs)), "the ledger stays small"
