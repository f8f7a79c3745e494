"""Completing many: one commit, and each message has an outcome of its own."""

import asyncio
from typing import Any

import pytest
from tests.conformance.helpers import counts, events_of, refused
from tests.conftest import OpenRoom

from postroom import Limits, Message, Room, State
from postroom.clock import ManualClock
from postroom.errors import BodyTooLarge, ClaimLost, InvalidField
from postroom.kernel import commands as c

COUNT = 5


@pytest.fixture
async def claimed(room: Room) -> list[Message]:
    await room.create_queue("jobs", visibility_timeout_s=30)
    await room.publish_many("jobs", range(COUNT))
    return await room.claim("jobs", limit=COUNT)


def _done(messages: list[Message]) -> list[tuple[Message, Any]]:
    return [(message, {"n": message.body}) for message in messages]


async def test_each_message_ends_with_its_own_result_and_event(room: Room, claimed: list[Message]) -> None:
    assert await room.complete_many(_done(claimed)) == [None] * COUNT
    for message in claimed:
        found = await room.get(message.id)
        assert (found.state, found.result) == (State.COMPLETED, {"n": message.body})
        assert events_of(room, message.id) == ["published", "claimed", "completed"]
    assert await counts(room, "jobs") == {"completed": COUNT}


async def test_one_that_is_refused_keeps_no_other_from_being_completed(
    room: Room, claimed: list[Message]
) -> None:
    await room.cancel(claimed[1].id)
    await room.release(claimed[3])
    results: list[tuple[Message, Any]] = _done(claimed)
    results[2] = (claimed[2], object())
    outcomes = await room.complete_many(results)
    assert [type(each) for each in outcomes] == [type(None), ClaimLost, InvalidField, ClaimLost, type(None)]
    assert await counts(room, "jobs") == {"completed": 2, "cancelled": 1, "claimed": 1, "pending": 1}


async def test_saying_it_again_is_no_error_and_late_is_better_than_never(
    room: Room, claimed: list[Message], clock: ManualClock
) -> None:
    await room.complete(claimed[0])
    clock.advance(31)
    # The leases have run out, and one message was given to somebody else.
    [retaken] = await room.claim("jobs", worker="bob")
    others = [message for message in claimed if message.id != retaken.id]
    assert await room.complete_many(_done(others)) == [None] * (COUNT - 1)
    [lost] = [message for message in claimed if message.id == retaken.id]
    [error] = await room.complete_many([(lost, None)])
    assert isinstance(error, ClaimLost)
    assert await room.complete_many([(retaken, None), (retaken, None)]) == [None, None]
    assert await counts(room, "jobs") == {"completed": COUNT}


async def test_nothing_to_complete_is_nothing(room: Room) -> None:
    assert await room.complete_many([]) == []


async def test_a_message_that_was_not_claimed_is_refused_with_all(room: Room, claimed: list[Message]) -> None:
    unclaimed = await room.get(claimed[1].id)
    async with refused(room, ClaimLost):
        await room.complete_many([(claimed[0], None), (unclaimed, None)])


async def test_too_many_at_once_are_refused(open_room: OpenRoom) -> None:
    async with open_room(limits=Limits(claim_batch=2, body_bytes=20)) as room:
        await room.create_queue("jobs")
        await room.publish_many("jobs", range(3))
        claimed = [*await room.claim("jobs", limit=2), *await room.claim("jobs")]
        async with refused(room, InvalidField, "at most 2"):
            await room.complete_many([(message, None) for message in claimed])
        [error, fine] = await room.complete_many([(claimed[0], "x" * 30), (claimed[1], None)])
        assert isinstance(error, BodyTooLarge)
        assert fine is None


async def test_it_is_no_part_of_a_unit_which_is_all_or_nothing(room: Room, claimed: list[Message]) -> None:
    done = ((claimed[0].id, claimed[0].claim_token or "", None),)
    async with refused(room, InvalidField, "CompleteMany"):
        await room.run(c.Unit(commands=(c.CompleteMany(done=done),)))


async def test_deliveries_of_a_broadcast_end_it(room: Room) -> None:
    await room.create_queue("news", consumer_mode="broadcast")
    for name in ("ann", "bob"):
        await room.subscribe("news", name)
    sent = await room.publish_many("news", range(COUNT))
    claimed = [
        message
        for name in ("ann", "bob")
        for message in await room.claim("news", limit=COUNT, subscription=name)
    ]
    assert set(await room.complete_many(_done(claimed))) == {None}
    assert {(await room.get(each.id)).state for each in sent} == {State.COMPLETED}


async def test_it_goes_together_with_the_next_claim(room: Room, claimed: list[Message]) -> None:
    await room.publish("jobs", "next")
    [found], outcomes = await asyncio.gather(room.claim("jobs"), room.complete_many(_done(claimed)))
    assert (found.body, outcomes) == ("next", [None] * COUNT)
