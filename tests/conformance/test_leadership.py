"""Leadership: of many, one at a time, for a lease; another takes over when it is not renewed."""

import asyncio

from tests.conformance.helpers import one, state_of
from tests.conftest import OpenRoom

from postroom import Room, State
from postroom.clock import ManualClock
from postroom.kernel import commands as c


async def _lead(room: Room, holder: str, seconds: float = 60, name: str = "housekeeping") -> bool:
    return await room.run(c.Lead(name=name, holder=holder, seconds=seconds))


async def _leader(room: Room) -> str | None:
    return (await room.housekeepers())[0].leader


async def test_one_leads_and_the_others_do_not(room: Room) -> None:
    assert await _leader(room) is None
    assert await _lead(room, "first")
    assert not await _lead(room, "second")
    assert await _leader(room) == "first"


async def test_of_many_at_once_exactly_one_leads(room: Room) -> None:
    outcomes = await asyncio.gather(*(_lead(room, f"holder {n}") for n in range(10)))
    assert sum(outcomes) == 1


async def test_a_leader_that_renews_stays(room: Room, clock: ManualClock) -> None:
    for _ in range(5):
        assert await _lead(room, "first")
        clock.advance(59)
        assert not await _lead(room, "second")


async def test_a_leader_that_does_not_renew_is_replaced(room: Room, clock: ManualClock) -> None:
    await _lead(room, "first")
    clock.advance(60)
    assert await _leader(room) is None
    assert await _lead(room, "second")
    assert not await _lead(room, "first")
    assert await _leader(room) == "second"


async def test_a_leader_may_give_up_and_only_its_own_leadership(room: Room) -> None:
    await _lead(room, "first")
    assert not await _lead(room, "second", seconds=0)
    assert await _leader(room) == "first"
    assert not await _lead(room, "first", seconds=0)
    assert await _leader(room) is None
    assert await _lead(room, "second")


async def test_leaderships_of_different_names_are_apart(room: Room) -> None:
    assert await _lead(room, "first", name="a")
    assert await _lead(room, "second", name="b")


async def test_a_room_with_housekeeping_leads_and_keeps_house(open_room: OpenRoom) -> None:
    async with open_room(clock=None, housekeeping=True, actor="keeper") as room:
        await room.create_queue("jobs")
        receipt = await room.publish("jobs", 1)
        await one(room, "jobs", lease=0.1)
        async with asyncio.timeout(60):
            while await state_of(room, receipt.id) is not State.PENDING:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert await _leader(room) == "keeper"


async def test_a_room_that_does_not_lead_keeps_no_house(open_room: OpenRoom) -> None:
    async with open_room(clock=None, actor="other") as room:
        await _lead(room, "elsewhere")
        assert not room._core.housekeeping._lead()
        room._core.housekeeping.round()
        assert {status.runs for status in await room.housekeepers()} == {0}
