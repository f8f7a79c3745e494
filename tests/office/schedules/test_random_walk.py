"""Whatever is done in whatever order, each time of a schedule that was on is sent for once, and no other."""

import asyncio
import random

import pytest
from tests.office.schedules.desk import Unchallenged, a_book, a_clockwork, furnish, mail, moment

from postroom import Room
from postroom.clock import SECOND, ManualClock
from postroom.office.schedules import Cron, Scheduler

CRON, ZONE = "*/10 1,2,3 * * *", "Europe/Berlin"
START = "2026-10-24T22:00Z"  # the night in which the clocks go back


def a_leading_clockwork(room: Room, clock: ManualClock) -> Scheduler:
    """All believe that they lead."""
    work = a_clockwork(room, clock)
    work._leader = Unchallenged(room, "schedules", clock)
    return work


@pytest.mark.parametrize("seed", range(12))
async def test_every_time_once_and_no_other(room: Room, clock: ManualClock, seed: int) -> None:
    rng = random.Random(seed)
    clock.set(moment(START))
    await furnish(room)
    book = a_book(room, clock, zone=ZONE)
    await book.add("coder", "x", cron=CRON, label="night", missed="all")
    times = Cron(CRON, ZONE)
    works = [a_leading_clockwork(room, clock) for _ in range(3)]
    expected: list[int] = []
    came_to, on = clock.now(), True

    def pass_by() -> None:
        nonlocal came_to
        for slot in times.times(came_to):
            if slot > clock.now():
                return
            expected.append(slot)
            came_to = slot

    async def look() -> None:
        for work in works:
            work.wake()
        await asyncio.gather(*(work.round() for work in works))
        for work in works:
            await work.round()
        if on:
            pass_by()

    for _ in range(60):
        step = rng.choice(
            ["time", "time", "time", "look", "look", "pause", "resume", "back", "restart", "text"]
        )
        if step == "time":
            clock.advance(rng.choice([30, 600, 1799, 3600]))
        elif step == "look":
            await look()
        elif step == "back":
            clock.advance(-rng.choice([5, 600, 1800]))
        elif step == "restart":
            works[rng.randrange(3)] = a_leading_clockwork(room, clock)
        elif step == "text":
            await book.change("night", text=f"words {rng.random()}")
        elif step == "pause" and on:
            await look()
            await book.pause("night")
            on = False
        elif step == "resume" and not on:
            await book.resume("night")
            on, came_to = True, clock.now()
    await look()
    sent = [message.idempotency_key for message in await mail(room)]
    assert len(sent) == len(set(sent)), "none twice"
    found = sorted(moment((key or "").rpartition("/")[2]) for key in sent)
    assert found == sorted(set(expected))
    assert all((slot // SECOND) % 600 == 0 for slot in found)
