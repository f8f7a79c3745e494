"""Extend: the lease begins anew from now."""

import math
from typing import Any

import pytest
from tests.conformance.helpers import counts, events_of, one, refused

from postroom import Room, State
from postroom.clock import SECOND, ManualClock
from postroom.errors import InvalidField


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs", visibility_timeout_s=30)
    await room.publish("jobs", 1)
    return room


async def test_an_extended_claim_outlives_its_first_lease(jobs: Room, clock: ManualClock) -> None:
    message = await one(jobs, "jobs")
    for _ in range(5):
        clock.advance(29)
        assert await jobs.extend(message) == clock.now() + 30 * SECOND
        assert await jobs.claim("jobs") == []
    assert (await jobs.get(message.id)).attempts == 1
    await jobs.complete(message)


async def test_the_new_lease_can_be_chosen(jobs: Room, clock: ManualClock) -> None:
    message = await one(jobs, "jobs")
    assert await jobs.extend(message, 100) == clock.now() + 100 * SECOND
    assert (await jobs.get(message.id)).claim_expires_at == clock.now() + 100 * SECOND
    clock.advance(99)
    assert await jobs.claim("jobs") == []
    clock.advance(1)
    assert (await one(jobs, "jobs")).attempts == 2


async def test_a_late_holder_that_was_not_replaced_may_extend(jobs: Room, clock: ManualClock) -> None:
    message = await one(jobs, "jobs")
    clock.advance(31)
    await jobs.extend(message)
    assert await jobs.claim("jobs") == []


async def test_extending_changes_nothing_but_the_lease_and_is_one_event(jobs: Room) -> None:
    message = await one(jobs, "jobs")
    await jobs.extend(message)
    kept = await jobs.get(message.id)
    assert (kept.state, kept.claimed_by, kept.claimed_at) == (
        State.CLAIMED,
        message.claimed_by,
        message.claimed_at,
    )
    assert await counts(jobs, "jobs") == {"claimed": 1}
    assert events_of(jobs, message.id) == ["published", "claimed", "extended"]


@pytest.mark.parametrize("lease", [0, -1, math.nan, math.inf, 86_401, "long"], ids=repr)
async def test_a_lease_out_of_bounds_is_refused(jobs: Room, lease: Any) -> None:
    message = await one(jobs, "jobs")
    async with refused(jobs, InvalidField, "lease"):
        await jobs.extend(message, lease)
