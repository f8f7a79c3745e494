"""A queue hands out no more in a period than its rate allows, in all or for each value of a label."""

import asyncio
from typing import Any

import pytest
from tests.conftest import OpenRoom

from postroom import InvalidField, Room, State
from postroom.clock import SECOND, ManualClock

START = 1_800_000_000 * SECOND
DAY_S = 24 * 3600


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


async def bodies(room: Room, limit: int = 100) -> list[Any]:
    return [message.body for message in await room.claim("jobs", limit=limit)]


async def test_no_more_go_out_than_the_rate_allows_and_then_evenly(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue("jobs", rate_limit=3, rate_period_s=60, visibility_timeout_s=DAY_S)
        await room.publish_many("jobs", list(range(10)))
        assert await bodies(room) == [0, 1, 2]
        assert await bodies(room) == []
        clock.advance(20)
        assert await bodies(room) == [3]
        clock.advance(19.9)
        assert await bodies(room) == []
        clock.advance(3600)  # what was not used does not pile up
        assert await bodies(room) == [4, 5, 6]


async def test_a_rate_holds_over_a_restart_and_over_several_claims_at_once(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue("jobs", rate_limit=3, rate_period_s=60, visibility_timeout_s=DAY_S)
        await room.publish_many("jobs", list(range(10)))
        claimed = await asyncio.gather(*(room.claim("jobs", limit=2) for _ in range(5)))
        assert sorted(message.body for group in claimed for message in group) == [0, 1, 2]


async def test_a_message_that_is_tried_again_counts_again(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue("jobs", rate_limit=1, rate_period_s=60, visibility_timeout_s=DAY_S)
        await room.publish("jobs", "a")
        [message] = await room.claim("jobs")
        await room.release(message)
        assert await bodies(room) == []
        clock.advance(60)
        assert await bodies(room) == ["a"]


async def test_each_value_of_a_label_has_a_rate_of_its_own_and_keeps_nobody_else_waiting(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue(
            "jobs", rate_limit=1, rate_period_s=60, visibility_timeout_s=DAY_S, rate_key="customer"
        )
        for number in range(3):
            await room.publish("jobs", f"ann {number}", labels={"customer": "ann"})
        await room.publish("jobs", "bob 0", labels={"customer": "bob"})
        await room.publish("jobs", "nobody")
        assert await bodies(room) == ["ann 0", "bob 0", "nobody"]
        assert (await room.counts("jobs")).delayed == 2
        clock.advance(60)
        assert await bodies(room) == ["ann 1"]
        clock.advance(60)
        assert await bodies(room) == ["ann 2"]


async def test_what_is_put_off_keeps_its_order_and_counts_no_attempt(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue(
            "jobs", rate_limit=2, rate_period_s=60, visibility_timeout_s=DAY_S, rate_key="customer"
        )
        sent = await room.publish_many("jobs", list(range(8)), labels={"customer": 7})
        got = await bodies(room)
        last = await room.get(sent[-1].id)
        assert (last.state, last.attempts) == (State.DELAYED, 0)
        for _ in range(6):
            clock.advance(30)
            got += await bodies(room)
        assert got == list(range(8))


async def test_who_waits_for_a_message_gets_it_when_the_rate_lets_it_go(live_room: Room) -> None:
    await live_room.create_queue("jobs", rate_limit=1, rate_period_s=0.2)
    await live_room.publish_many("jobs", [1, 2])
    [first] = await live_room.claim("jobs", wait=60)
    [second] = await live_room.claim("jobs", wait=60)
    assert (first.body, second.body) == (1, 2)
    assert second.claimed_at is not None
    assert first.claimed_at is not None
    assert second.claimed_at - first.claimed_at >= 0.2 * SECOND


async def test_a_rate_can_be_changed_and_taken_away(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue("jobs", rate_limit=1, rate_period_s=3600, visibility_timeout_s=DAY_S)
        await room.publish_many("jobs", [1, 2, 3])
        assert await bodies(room) == [1]
        await room.update_queue("jobs", rate_limit=None)
        assert await bodies(room) == [2, 3]


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate_limit": 0},
        {"rate_limit": 1, "rate_period_s": 0},
        {"rate_key": "customer"},
        {"rate_limit": 1, "rate_key": ""},
    ],
)
async def test_what_is_no_rate_is_refused(room: Room, wrong: Any) -> None:
    with pytest.raises(InvalidField):
        await room.create_queue("jobs", **wrong)


async def test_what_is_kept_of_unused_rates_is_dropped(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue(
            "jobs", rate_limit=1, rate_period_s=60, visibility_timeout_s=DAY_S, rate_key="customer"
        )
        await room.publish("jobs", 1, labels={"customer": "ann"})
        assert await bodies(room) == [1]
        clock.advance(3 * DAY_S)
        assert await room.housekeep("pruner") >= 1
