"""Complete: the work is done, once, with an outcome everybody can read."""

import math
from typing import Any

import pytest
from tests.conformance.helpers import LONE_SURROGATE, counts, events, events_of, one, refused, unchanged
from tests.conftest import OpenRoom

from postroom import Limits, Room, State
from postroom.clock import ManualClock
from postroom.errors import BodyTooLarge, ClaimLost, InvalidField
from postroom.kernel.housekeeping import roster


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
    assert await jobs.housekeep(roster.ARCHIVER) == 1
    archived = await jobs.get(message.id)
    assert (archived.state, archived.result, archived.archived) == (State.COMPLETED, "done", True)
    async with refused(jobs, ClaimLost, "archived"):
        await jobs.release(message)
