"""Counts: how many messages are in each state, true at every moment."""

import asyncio
import random

import pytest
from tests.conformance.helpers import counts, dead_letter, one
from tests.conformance.promises import check_promises

from postroom import Room
from postroom.clock import ManualClock
from postroom.errors import ClaimLost


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs")
    return room


async def test_every_state_is_counted(jobs: Room, clock: ManualClock) -> None:
    await jobs.publish("jobs", "expired", ttl=1)
    clock.advance(1)
    await jobs.housekeep("expiry_enforcer")
    await jobs.publish("jobs", "completed")
    await jobs.complete(await one(jobs, "jobs"))
    cancelled = await jobs.publish("jobs", "cancelled")
    await jobs.cancel(cancelled.id)
    await dead_letter(jobs, "jobs", "dead")
    await jobs.publish("jobs", "claimed")
    await one(jobs, "jobs")
    await jobs.publish_many("jobs", ["delayed"] * 2, delay=60)
    await jobs.publish_many("jobs", ["pending"] * 3)
    found = await jobs.counts("jobs")
    assert (found.pending, found.delayed, found.claimed) == (3, 2, 1)
    assert (found.completed, found.expired, found.cancelled, found.dead) == (1, 1, 1, 0)
    assert (found.waiting, found.open) == (5, 6)
    assert await counts(jobs, "_dead_letter") == {"dead": 1}


async def test_archived_messages_are_not_counted(jobs: Room, clock: ManualClock) -> None:
    await jobs.publish_many("jobs", range(3))
    for message in await jobs.claim("jobs", limit=2):
        await jobs.complete(message)
    clock.advance(3601)
    await jobs.housekeep("message_archiver")
    assert await counts(jobs, "jobs") == {"pending": 1}


async def test_a_claim_that_runs_out_is_counted_as_pending_again(jobs: Room, clock: ManualClock) -> None:
    await jobs.publish("jobs", 1)
    await one(jobs, "jobs")
    clock.advance(31)
    await jobs.housekeep("visibility_timeout_enforcer")
    assert await counts(jobs, "jobs") == {"pending": 1}


async def test_counts_stay_true_through_many_concurrent_changes(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs", ordering="priority", max_retries=3, visibility_timeout_s=5)
    await room.create_queue("news", consumer_mode="broadcast", max_retries=2)
    for name in ("ann", "bob"):
        await room.subscribe("news", name)
    rng = random.Random(7)

    async def work(queue: str, subscription: str | None) -> None:
        for message in await room.claim(queue, limit=3, subscription=subscription):
            choice = rng.randrange(7)
            try:
                if choice == 0:
                    await room.fail(message, "bad", retry=rng.random() < 0.7)
                elif choice == 1:
                    await room.release(message)
                elif choice == 2:
                    await room.snooze(message, 2)
                elif choice == 3:
                    await room.cancel(message.id)
                elif choice == 4:
                    await room.kill(message.id, "guard")
                elif choice == 5:
                    await room.complete(message)
            except ClaimLost:
                pass

    for _ in range(15):
        await asyncio.gather(
            room.publish_many("jobs", range(3), ttl=20, score=rng.randrange(1000)),
            room.publish("jobs", 1, delay=rng.randrange(10)),
            room.publish("news", 1, ttl=rng.randrange(1, 30)),
            work("jobs", None),
            work("jobs", None),
            work("news", "ann"),
            work("news", "bob"),
            room.housekeep("visibility_timeout_enforcer"),
            room.replay(scope="default", limit=2),
        )
        clock.advance(rng.randrange(4))
        check_promises(room)
