"""Complete: the work is done, once, with an outcome everybody can read."""

import asyncio
import math
from typing import Any

import pytest
from tests.conformance.helpers import LONE_SURROGATE, counts, events, events_of, one, refused, unchanged
from tests.conftest import OpenRoom

from postroom import Limits, PostroomError, Room, State
from postroom.clock import ManualClock
from postroom.errors import BodyTooLarge, ClaimLost, InvalidField
from postroom.kernel.housekeeping import housekeepers


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs")
    await room.publish("jobs", 1, correlation_id="talk")
    return room


async def test_completing_ends_the_message(jobs: Room, clock: ManualClock) -> None:
    message = await one(jobs, "jobs")
    clock.advance(3)
    await jobs.complete(message)
    done = await jobs.get(message.id)
    assert done.state is State.COMPLETED
    assert done.finished_at == done.updated_at == clock.now()
    assert (done.claimed_by, done.claim_expires_at, done.result) == (None, None, None)
    assert await counts(jobs, "jobs") == {"completed": 1}
    clock.advance(3600)
    assert await jobs.claim("jobs") == []


async def test_the_result_is_readable_on_the_message(jobs: Room) -> None:
    message = await one(jobs, "jobs")
    result = {"decision": "approve", "note": "Zoë", "n": [1, None]}
    await jobs.complete(message, result)
    assert (await jobs.get(message.id)).result == result


@pytest.mark.parametrize("result", [0, False, "", [], {}], ids=repr)
async def test_a_result_that_is_empty_is_still_a_result(jobs: Room, result: Any) -> None:
    message = await one(jobs, "jobs")
    await jobs.complete(message, result)
    assert (await jobs.get(message.id)).result == result


async def test_completing_is_one_event_with_the_conversation(jobs: Room) -> None:
    message = await one(jobs, "jobs")
    await jobs.complete(message)
    assert events_of(jobs, message.id) == ["published", "claimed", "completed"]
    event = events(jobs)[-1]
    assert (event.type, event.correlation_id) == ("message.completed", "talk")
    assert event.details["state"] == "completed"


async def test_completing_again_with_the_same_claim_is_no_error_and_changes_nothing(jobs: Room) -> None:
    message = await one(jobs, "jobs")
    await jobs.complete(message, "first")
    async with unchanged(jobs):
        await jobs.complete(message, "second")
    assert (await jobs.get(message.id)).result == "first"


async def test_a_result_that_json_cannot_hold_is_refused_and_the_claim_stays(jobs: Room) -> None:
    message = await one(jobs, "jobs")
    for result in (math.nan, object(), LONE_SURROGATE, [{"x": math.inf}]):
        async with refused(jobs, InvalidField, "result"):
            await jobs.complete(message, result)
    await jobs.complete(message, "fine")


async def test_a_result_over_the_limit_is_refused_and_the_claim_stays(open_room: OpenRoom) -> None:
    async with open_room(limits=Limits(body_bytes=20)) as room:
        await room.create_queue("jobs")
        await room.publish("jobs", 1)
        message = await one(room, "jobs")
        async with refused(room, BodyTooLarge, "result", "21"):
            await room.complete(message, "x" * 19)
        await room.complete(message, "x" * 18)


async def test_a_completed_message_that_was_archived_stays_completed(jobs: Room, clock: ManualClock) -> None:
    message = await one(jobs, "jobs")
    await jobs.complete(message, "done")
    clock.advance(3601)
    assert await jobs.housekeep(housekeepers.ARCHIVER) == 1
    archived = await jobs.get(message.id)
    assert (archived.state, archived.result, archived.archived) == (State.COMPLETED, "done", True)
    async with refused(jobs, ClaimLost, "archived"):
        await jobs.release(message)


async def test_completions_of_one_moment_are_each_judged_alone(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(5))
    good, other, stale, bad, taken = (await jobs.claim("jobs", limit=None))[:5]
    await jobs.release(stale)
    outcomes = await asyncio.gather(
        jobs.complete(good, "first"),
        jobs.complete(stale),
        jobs.complete(good, "again"),
        jobs.complete(bad, math.nan),
        jobs.fail(taken, "no"),
        jobs.complete(taken),
        jobs.complete(other, "second"),
        return_exceptions=True,
    )
    kinds = [type(outcome) for outcome in outcomes]
    none = type(None)
    assert kinds == [none, ClaimLost, none, InvalidField, none, ClaimLost, none]
    assert (await jobs.get(good.id)).result == "first"
    assert (await jobs.get(other.id)).result == "second"
    assert (await jobs.get(bad.id)).state is State.CLAIMED
    assert events_of(jobs, good.id) == ["published", "claimed", "completed"]


@pytest.mark.parametrize("rival", ["fail", "release", "cancel", "snooze"])
async def test_of_two_ends_in_one_moment_exactly_one_happens(jobs: Room, rival: str) -> None:
    message = await one(jobs, "jobs")
    rivals = {
        "fail": lambda: jobs.fail(message, "no", retry=False),
        "release": lambda: jobs.release(message),
        "cancel": lambda: jobs.cancel(message.id),
        "snooze": lambda: jobs.snooze(message, 5),
    }
    first, second = await asyncio.gather(jobs.complete(message), rivals[rival](), return_exceptions=True)
    assert first is None
    assert isinstance(second, PostroomError)
    assert events_of(jobs, message.id) == ["published", "claimed", "completed"]


async def test_every_delivery_of_a_broadcast_may_complete_in_one_moment(room: Room) -> None:
    await room.create_queue("news", consumer_mode="broadcast")
    names = ["ann", "bob", "cid"]
    for name in names:
        await room.subscribe("news", name)
    originals = await room.publish_many("news", [1, 2])
    copies = [copy for name in names for copy in await room.claim("news", subscription=name, limit=2)]
    await asyncio.gather(*(room.complete(copy) for copy in copies))
    for original in originals:
        assert events_of(room, original.id) == ["published", "completed"]
