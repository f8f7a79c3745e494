"""Snooze: later, without counting an attempt."""

import math
from typing import Any

import pytest
from tests.conformance.helpers import LONE_SURROGATE, bodies, events, events_of, one, refused

from postroom import Room, State
from postroom.clock import SECOND, ManualClock
from postroom.errors import InvalidField


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs", max_retries=1)
    await room.publish("jobs", 1)
    return room


async def test_a_snoozed_message_comes_back_later_and_the_attempt_does_not_count(
    jobs: Room, clock: ManualClock
) -> None:
    message = await one(jobs, "jobs")
    await jobs.snooze(message, 60, reason="rate limit")
    later = await jobs.get(message.id)
    assert (later.state, later.attempts) == (State.DELAYED, 0)
    assert (later.visible_at, later.failure_reason) == (clock.now() + 60 * SECOND, "rate limit")
    clock.advance(59.999)
    assert await jobs.claim("jobs") == []
    clock.advance(0.001)
    assert (await one(jobs, "jobs")).attempts == 1
    assert events_of(jobs, message.id) == ["published", "claimed", "snoozed", "ready", "claimed"]


async def test_a_message_may_be_snoozed_more_often_than_it_may_fail(jobs: Room, clock: ManualClock) -> None:
    for _ in range(20):
        await jobs.snooze(await one(jobs, "jobs"), 1)
        clock.advance(1)
    assert (await one(jobs, "jobs")).attempts == 1


async def test_the_moment_may_be_named(jobs: Room, clock: ManualClock) -> None:
    message = await one(jobs, "jobs")
    await jobs.snooze(message, until=clock.now() + 5 * SECOND)
    assert (await jobs.get(message.id)).visible_at == clock.now() + 5 * SECOND


async def test_a_moment_that_has_passed_means_at_once(jobs: Room, clock: ManualClock) -> None:
    await jobs.snooze(await one(jobs, "jobs"), until=clock.now() - 5 * SECOND)
    clock.advance(0.001)
    assert (await one(jobs, "jobs")).attempts == 1


async def test_a_snoozed_message_keeps_its_place(jobs: Room, clock: ManualClock) -> None:
    await jobs.publish("jobs", 2)
    await jobs.snooze(await one(jobs, "jobs"), 1)
    clock.advance(1)
    assert await bodies(jobs, "jobs") == [1, 2]


@pytest.mark.parametrize("seconds", [math.nan, math.inf, 1e30, "soon"], ids=repr)
async def test_a_time_out_of_bounds_is_refused_and_the_claim_stays(jobs: Room, seconds: Any) -> None:
    message = await one(jobs, "jobs")
    async with refused(jobs, InvalidField):
        await jobs.snooze(message, seconds)
    await jobs.complete(message)


async def test_exactly_one_of_seconds_and_until_must_be_given(jobs: Room, clock: ManualClock) -> None:
    message = await one(jobs, "jobs")
    async with refused(jobs, InvalidField, "either seconds or until"):
        await jobs.snooze(message)
    async with refused(jobs, InvalidField, "either seconds or until"):
        await jobs.snooze(message, 5, until=clock.now())


async def test_a_reason_is_never_refused_only_cut(jobs: Room, clock: ManualClock) -> None:
    for reason in (LONE_SURROGATE, "x" * 100_000):
        await jobs.snooze(await one(jobs, "jobs"), 1, reason=reason)
        clock.advance(1)
    assert all(len(event.data) < 1000 for event in events(jobs)), "the ledger stays small"
