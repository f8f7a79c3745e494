"""A schedule of a queue publishes each time once, one run at a time, and makes up what it was told to."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.conftest import OpenRoom

from postroom import InvalidField, NotFound, QueueNotFound, Room
from postroom.clock import SECOND, ManualClock, from_datetime
from postroom.kernel.schedules.errors import InvalidCron, NotInFuture

START = from_datetime(datetime(2027, 3, 1, 12, 0, tzinfo=UTC))
HOUR = 3600


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


async def tick(room: Room, clock: ManualClock, seconds: float) -> list[Any]:
    """Time goes on, and the housekeeper comes; the times of what was published, which is then done."""
    clock.advance(seconds)
    await room.housekeep("queue_scheduler")
    claimed = await room.claim("jobs", limit=None)
    for message in claimed:
        await room.complete(message)
    return [message.metadata["time"][11:19] for message in claimed]


async def test_each_time_is_published_once(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue("jobs")
        made = await room.schedule("poll", "jobs", {"n": 1}, every_s=HOUR, labels={"a": "b"})
        assert made.next_at == START + HOUR * SECOND
        assert await tick(room, clock, HOUR - 1) == []
        assert await tick(room, clock, 1) == ["13:00:00"]
        assert await tick(room, clock, 0) == []
        assert await tick(room, clock, HOUR + 5) == ["14:00:00"]
        [found] = await room.schedules()
        assert (found.published, found.next_at) == (2, START + 3 * HOUR * SECOND)
        message = await room.get(found.last_message_id or "")
        assert (message.body, message.labels, message.source_type) == ({"n": 1}, {"a": "b"}, "schedule")


async def test_cron_follows_the_clock_of_its_zone(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue("jobs")
        made = await room.schedule("nightly", "jobs", cron="30 2 * * *", zone="Europe/Berlin")
        assert made.next_at == from_datetime(datetime(2027, 3, 2, 1, 30, tzinfo=UTC))
        # The clock is put forward in the night to the 28th: half past two comes right after the gap.
        clock.set(from_datetime(datetime(2027, 3, 27, 12, 0, tzinfo=UTC)))
        await tick(room, clock, 0)
        [found] = await room.schedules()
        assert found.next_at == from_datetime(datetime(2027, 3, 28, 1, 0, tzinfo=UTC))


@pytest.mark.parametrize(
    ("missed", "published"),
    [
        ("skip", []),
        ("once", ["17:00:00"]),
        ("all", ["13:00:00", "14:00:00", "15:00:00", "16:00:00", "17:00:00"]),
    ],
)
async def test_times_that_nobody_was_there_for(
    open_room: OpenRoom, clock: ManualClock, missed: str, published: list[str]
) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue("jobs")
        await room.schedule("poll", "jobs", every_s=HOUR, missed=missed)
        assert await tick(room, clock, 5.5 * HOUR) == published
        assert await tick(room, clock, 0.5 * HOUR) == ["18:00:00"]


async def test_one_run_at_a_time_unless_told_otherwise(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue("jobs")
        await room.create_queue("others")
        await room.schedule("poll", "jobs", every_s=HOUR)
        await room.schedule("pile", "others", every_s=HOUR, overlap=True)
        for _ in range(3):
            clock.advance(HOUR)
            await room.housekeep("queue_scheduler")
        assert (await room.counts("jobs")).pending == 1
        assert (await room.counts("others")).pending == 3
        found = {schedule.name: schedule for schedule in await room.schedules("default")}
        assert "still open" in found["poll"].problem
        [message] = await room.claim("jobs")
        await room.complete(message)
        assert await tick(room, clock, HOUR) == ["16:00:00"]
        assert {schedule.name: schedule.problem for schedule in await room.schedules()}["poll"] == ""


async def test_a_schedule_is_changed_switched_off_run_by_hand_and_removed(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue("jobs")
        await room.schedule("poll", "jobs", every_s=HOUR)
        off = await room.schedule("poll", "jobs", every_s=HOUR, enabled=False)
        assert off.next_at is None
        assert await tick(room, clock, 3 * HOUR) == []
        receipt = await room.run_schedule("poll")
        assert (await room.get(receipt.id)).metadata == {"schedule": "default/poll"}
        await room.cancel(receipt.id)
        await room.schedule("poll", "jobs", every_s=2 * HOUR)
        assert await tick(room, clock, HOUR) == ["16:00:00"]  # from when it was made
        await room.unschedule("default/poll")
        assert await tick(room, clock, 10 * HOUR) == []
        assert await room.schedules() == []
        for gone in (room.unschedule("poll"), room.run_schedule("poll")):
            with pytest.raises(NotFound, match="default/poll"):
                await gone
        again = await room.schedule("poll", "jobs", every_s=HOUR)
        assert (again.published, again.created_at) == (0, clock.now())


async def test_once_means_once(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue("jobs")
        await room.schedule("launch", "jobs", at=START + HOUR * SECOND)
        assert await tick(room, clock, 2 * HOUR) == ["13:00:00"]
        assert await tick(room, clock, 48 * HOUR) == []
        [found] = await room.schedules()
        assert (found.next_at, found.published) == (None, 1)


async def test_a_queue_that_takes_nothing_is_told_and_stops_no_other(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue("jobs")
        await room.create_queue("shut")
        await room.schedule("a", "shut", every_s=HOUR)
        await room.schedule("b", "jobs", every_s=HOUR)
        await room.set_queue_state("shut", "paused")
        assert await tick(room, clock, HOUR) == ["13:00:00"]
        found = {schedule.name: schedule for schedule in await room.schedules()}
        assert "paused" in found["a"].problem
        await room.set_queue_state("shut", "active")
        await tick(room, clock, HOUR)
        assert (await room.counts("shut")).pending == 1


async def test_many_schedules_are_all_met(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue("jobs")
        for number in range(120):
            await room.schedule(f"s{number}", "jobs", every_s=HOUR)
        assert len(await tick(room, clock, HOUR)) == 120


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, InvalidField),
        ({"every_s": 60, "cron": "* * * * *"}, InvalidField),
        ({"every_s": 0.5}, InvalidField),
        ({"cron": "61 * * * *"}, InvalidCron),
        ({"cron": "0 0 30 2 *"}, InvalidCron),
        ({"cron": "* * * * *", "zone": "Mars"}, InvalidField),
        ({"at": START - 1}, NotInFuture),
        ({"every_s": 60, "missed": "perhaps"}, InvalidField),
        ({"every_s": 60, "evry": 1}, InvalidField),
        ({"every_s": 60, "labels": {"a": [1]}}, InvalidField),
    ],
)
async def test_what_is_no_schedule_is_refused(
    open_room: OpenRoom, clock: ManualClock, options: Any, kind: type[Exception]
) -> None:
    async with open_room(clock=clock) as room:
        await room.create_queue("jobs")
        with pytest.raises(kind):
            await room.schedule("poll", "jobs", **options)
        with pytest.raises(QueueNotFound):
            await room.schedule("poll", "nowhere", every_s=60)
        assert await room.schedules() == []


async def test_housekeeping_publishes_by_itself(live_room: Room) -> None:
    await live_room.create_queue("jobs")
    await live_room.schedule("poll", "jobs", "look", every_s=1)
    [message] = await live_room.claim("jobs", wait=60)
    assert message.body == "look"
