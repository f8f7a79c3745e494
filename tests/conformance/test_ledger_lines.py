"""The ledger has a bounded number of lines per message, however long it is held, put off or tried again."""

from tests.conformance.helpers import events_of, one
from tests.conftest import OpenRoom

from postroom import Room, State
from postroom.clock import ManualClock
from postroom.kernel.limits import Limits


async def test_heartbeats_of_hours_are_few_lines(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs", visibility_timeout_s=60)
    await room.publish("jobs", 1)
    held = await one(room, "jobs")
    for _ in range(500):
        clock.advance(30)
        await room.extend(held)
    await room.complete(held)
    # Published, claimed, completed, and one each time the claim was twice as old.
    assert len(events_of(room, held.id)) <= 3 + 37
    assert events_of(room, held.id).count("extended") >= 5


async def test_what_is_put_off_or_given_back_for_ever_ends_after_so_many_lines(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(limits=Limits(claims_per_message=20)) as room:
        await room.create_queue("jobs")
        for verb in ("snooze", "release"):
            receipt = await room.publish("jobs", verb)
            while (await room.get(receipt.id)).state in (State.PENDING, State.DELAYED):
                clock.advance(2)
                held = await one(room, "jobs")
                await (room.snooze(held, 1) if verb == "snooze" else room.release(held))
            lines = events_of(room, receipt.id)
            assert lines[-1] == "dead_lettered"
            # Each time it is claimed, put off and ready again.
            assert len(lines) <= 2 + 3 * 20


async def test_what_is_tried_again_ends_after_so_many_lines(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs", max_retries=5, backoff_base_s=1, backoff_cap_s=1)
    receipt = await room.publish("jobs", 1)
    for _ in range(5):
        await room.fail(await one(room, "jobs"), "no")
        clock.advance(10)
    lines = events_of(room, receipt.id)
    assert (lines[-1], len(lines) <= 2 + 3 * 5) == ("dead_lettered", True)
