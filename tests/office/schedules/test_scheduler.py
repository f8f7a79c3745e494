"""Each time of a schedule is dealt with exactly once: whoever runs, crashes, changes it or sets the clock."""

import asyncio
import logging
from typing import Any

import pytest
from tests.conftest import OpenRoom
from tests.office.schedules.desk import (
    DIRECTORY,
    Unchallenged,
    a_book,
    a_clockwork,
    furnish,
    mail,
    moment,
    slots,
)

from postroom import Room
from postroom.clock import SECOND, ManualClock
from postroom.kernel import commands as c
from postroom.office import queues
from postroom.office.intake.routing import AgentRef, OfficeDirectory
from postroom.office.schedules import Scheduler
from postroom.office.schedules.model import PROGRESS, SCHEDULE
from postroom.office.schedules.scheduler import LOOK_S, PAUSE_S

NINE = "2026-05-05T09:00:00.000Z"


@pytest.fixture(autouse=True)
async def morning(clock: ManualClock) -> None:
    clock.set(moment("2026-05-05T08:00Z"))


async def test_a_letter_is_sent_when_its_time_comes(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    book, work = a_book(room, clock), a_clockwork(room, clock)
    made = await book.add("coder", "Report", cron="0 9 * * *", label="daily")
    assert await work.round() == LOOK_S
    assert await mail(room) == []
    clock.set(moment(NINE) - SECOND)
    assert await work.round() == 1.0
    clock.set(moment(NINE))
    await work.round()
    [letter] = await mail(room)
    assert (letter.body["text"], letter.agent) == ("Report", "coder")
    assert (letter.channel, letter.sender, letter.sender_id) == (
        "schedule",
        "Scheduler",
        "tinyagi-schedule:daily",
    )
    assert letter.idempotency_key == f"schedule/{made.id}/{NINE}"
    found = await book.look("daily")
    assert (found.progress.fired, found.progress.last_slot) == (1, moment(NINE))


async def test_a_time_is_dealt_with_once_however_often_one_looks(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    book, work = a_book(room, clock), a_clockwork(room, clock)
    await book.add("coder", "Report", cron="*/10 * * * *")
    for _ in range(120):
        clock.advance(60)
        await work.round()
        await work.round()
    assert len(await mail(room)) == 12


async def test_of_two_that_send_at_once_one_does(room: Room, clock: ManualClock) -> None:
    """Also without the lease, which only saves work."""
    await furnish(room)
    book = a_book(room, clock)
    for number in range(20):
        await book.add("coder", str(number), cron="*/10 * * * *")
    works = [a_clockwork(room, clock) for _ in range(4)]

    for work in works:
        work._leader = Unchallenged(room, "schedules", clock)
        await work.round()
    for _ in range(3):
        clock.advance(600)
        await asyncio.gather(*(work.round() for work in works))
        await asyncio.gather(*(work.round() for work in works))
    assert len(await mail(room)) == 60


async def test_only_the_leader_sends_and_another_takes_over(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    book, one, other = a_book(room, clock), a_clockwork(room, clock), a_clockwork(room, clock)
    await book.add("coder", "x", cron="*/10 * * * *")
    await one.round()
    assert await other.round() == PAUSE_S
    clock.advance(600)  # the first is silent for longer than its lease
    await other.round()
    assert len(await mail(room)) == 1
    assert await one.round() == PAUSE_S


@pytest.mark.needs("reopen")
async def test_a_restart_makes_up_what_was_missed(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room() as room:
        await furnish(room)
        book = a_book(room, clock)
        for missed in ("skip", "once", "all"):
            await book.add("coder", missed, cron="0 * * * *", missed=missed)
        clock.advance(3600)
        await a_clockwork(room, clock).round()
    clock.advance(5 * 3600 + 600)
    async with open_room() as room:
        await a_clockwork(room, clock).round()
        letters = await mail(room)
        count = {text: [m.body["text"] for m in letters].count(text) for text in ("skip", "once", "all")}
        assert count == {"skip": 1, "once": 2, "all": 6}
        clock.advance(3000)
        await a_clockwork(room, clock).round()
        assert len(await mail(room)) == 12


async def test_a_one_time_letter_is_sent_once_and_then_off(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    book, work = a_book(room, clock), a_clockwork(room, clock)
    await book.add("coder", "Once", at=moment(NINE), label="once")
    await work.round()
    clock.set(moment(NINE) + 3600 * SECOND)
    await work.round()
    assert slots(await mail(room)) == [NINE]
    assert not (await book.show("once")).enabled
    clock.advance(3600)
    work.wake()
    await work.round()
    assert len(await mail(room)) == 1


async def test_a_missed_one_time_letter_that_is_skipped_does_not_stay_on(
    room: Room, clock: ManualClock
) -> None:
    await furnish(room)
    book, work = a_book(room, clock), a_clockwork(room, clock)
    await book.add("coder", "Once", at=moment(NINE), label="once", missed="skip")
    clock.set(moment(NINE) + 3600 * SECOND)
    await work.round()
    assert await mail(room) == []
    assert not (await book.show("once")).enabled


async def test_a_change_wakes_the_clockwork(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    work = a_clockwork(room, clock)
    book = a_book(room, clock, work)
    running = asyncio.create_task(work.run())
    try:
        async with asyncio.timeout(60):
            await book.add("coder", "x", at=clock.now() + SECOND, label="soon")
            clock.advance(1)
            await book.add("coder", "y", cron="@yearly")
            async for event in room.events(follow=True):
                if event.queue == "inbox/coder" and event.type == "message.published":
                    break
    finally:
        work.stop()
        await running
    assert [letter.body["text"] for letter in await mail(room)] == ["x"]


async def test_what_another_process_changes_is_seen_soon(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    work, elsewhere = a_clockwork(room, clock), a_book(room, clock)
    await work.round()
    await elsewhere.add("coder", "x", at=clock.now() + SECOND)
    clock.advance(LOOK_S)
    await work.round()
    assert len(await mail(room)) == 1


async def test_a_paused_or_removed_schedule_sends_nothing_more(room: Room, clock: ManualClock) -> None:
    """Even if the scheduler has not yet heard of it: what it wrote down is of another version."""
    await furnish(room)
    book, work = a_book(room, clock), a_clockwork(room, clock)
    await book.add("coder", "paused", cron="0 * * * *", label="paused")
    await book.add("coder", "removed", cron="0 * * * *", label="removed")
    await book.add("coder", "kept", cron="0 * * * *", label="kept")
    clock.set(moment(NINE) - SECOND)
    await work.round()
    await book.pause("paused")
    await book.remove("removed")
    clock.advance(1)
    await work.round()
    assert [letter.body["text"] for letter in await mail(room)] == ["kept"]


async def test_what_was_paused_does_not_make_up(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    book, work = a_book(room, clock), a_clockwork(room, clock)
    await book.add("coder", "x", cron="0 * * * *", label="daily", missed="all")
    await book.pause("daily")
    clock.advance(10 * 3600)
    await work.round()
    await book.resume("daily")
    await work.round()
    assert await mail(room) == []
    clock.advance(3600)
    await work.round()
    assert len(await mail(room)) == 1


async def test_new_times_begin_with_the_change(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    book, work = a_book(room, clock), a_clockwork(room, clock)
    await book.add("coder", "x", cron="0 12 * * *", label="daily")
    await work.round()
    clock.advance(5 * 60)
    await book.change("daily", cron="0 8 * * *")
    work.wake()
    await work.round()
    assert await mail(room) == [], "eight o'clock had passed when it was chosen"


async def test_a_new_text_is_used_from_the_next_time_on(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    book, work = a_book(room, clock), a_clockwork(room, clock)
    await book.add("coder", "old", cron="0 * * * *", label="daily")
    await work.round()
    clock.set(moment(NINE) - SECOND)
    await book.change("daily", text="new")
    clock.advance(1)
    await work.round()
    await work.round()
    assert [letter.body["text"] for letter in await mail(room)] == ["new"]


async def test_a_clock_put_back_a_little_repeats_nothing(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    book, work = a_book(room, clock), a_clockwork(room, clock)
    await book.add("coder", "x", cron="*/10 * * * *")
    for _ in range(6):
        clock.advance(600)
        await work.round()
    clock.advance(-1800)
    for _ in range(37):
        await work.round()
        clock.advance(100)
    sent = slots(await mail(room))
    assert len(sent) == len(set(sent)) == 6 + 3


async def test_a_clock_that_ran_far_ahead_does_not_stop_a_schedule(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    book, work = a_book(room, clock), a_clockwork(room, clock)
    await book.add("coder", "x", cron="0 * * * *", label="hourly")
    clock.advance(365 * 86_400)
    await work.round()
    clock.advance(-365 * 86_400)
    for _ in range(30):
        await work.round()
        clock.advance(360)
    sent = slots(await mail(room))
    assert sent[1:] == [f"2026-05-05T{hour:02}:00:00.000Z" for hour in (9, 10)]


async def test_a_time_that_was_sent_under_a_wrong_clock_is_not_sent_again(
    room: Room, clock: ManualClock
) -> None:
    await furnish(room)
    book, work = a_book(room, clock), a_clockwork(room, clock)
    await book.add("coder", "x", cron="0 * * * *", label="hourly", missed="all")
    clock.advance(5 * 3600)
    await work.round()
    assert len(await mail(room)) == 5
    clock.advance(-5 * 3600)
    await book.change("hourly", text="other words")
    for _ in range(60):
        work.wake()
        await work.round()
        clock.advance(360)
    sent = slots(await mail(room))
    assert len(sent) == len(set(sent)) == 5


async def test_a_full_inbox_delays_a_letter_but_does_not_lose_it(
    room: Room, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    await furnish(room, depth=1)
    book, work = a_book(room, clock), a_clockwork(room, clock)
    await book.add("coder", "first", at=moment(NINE))
    await book.add("coder", "second", at=moment(NINE) + SECOND)
    await book.add("lead", "other", at=moment(NINE) + SECOND)
    clock.set(moment(NINE) + SECOND)
    assert await work.round() == PAUSE_S
    assert len(await mail(room)) == 1
    assert len(await mail(room, "lead")) == 1, "others are not held up"
    assert "waits" in caplog.text
    [letter] = await room.claim(queues.inbox("coder"))
    await room.complete(letter)
    await work.round()
    assert {letter.body["text"] for letter in await mail(room)} == {"first", "second"}


async def test_an_agent_that_is_gone_is_told_of_and_stops_nothing(
    room: Room, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    await furnish(room)
    book = a_book(room, clock)
    await book.add("lead", "x", cron="0 9 * * *", label="lost")
    await book.add("coder", "y", cron="0 9 * * *")
    work = Scheduler(room, lambda: OfficeDirectory([AgentRef("coder")]), clock, overlap=True)
    clock.set(moment(NINE))
    await work.round()
    assert len(await mail(room)) == 1
    assert 'no agent or team "lead"' in (await book.look("lost")).progress.problem
    assert "lost" in caplog.text
    clock.advance(86_400)
    await a_clockwork(room, clock).round()
    clock.advance(60)
    work = a_clockwork(room, clock)
    work._leader = Unchallenged(room, "schedules", clock)
    await work.round()
    assert slots(await mail(room, "lead")) == ["2026-05-06T09:00:00.000Z"]
    assert (await book.look("lost")).progress.problem == ""


async def test_a_schedule_that_cannot_be_read_holds_nobody_up(
    room: Room, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    await furnish(room)
    book, work = a_book(room, clock), a_clockwork(room, clock)
    await book.add("coder", "good", cron="0 9 * * *")
    damaged: list[dict[str, Any]] = [
        {"label": 5},
        {"label": "x", "to": "coder", "text": "x", "cron": "nope"},
        {"label": "x", "to": "coder", "text": "x", "cron": "* * * * *", "zone": "Mars"},
    ]
    for number, data in enumerate(damaged):
        await room.run(c.PutDocument(kind=SCHEDULE, key=f"bad{number}", data=data))
    clock.set(moment(NINE))
    with caplog.at_level(logging.ERROR):
        await work.round()
    assert [letter.body["text"] for letter in await mail(room)] == ["good"]
    assert "bad0" in caplog.text


async def test_a_stumble_does_not_end_the_rounds(
    room: Room, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    await furnish(room)
    stumbles = [True, False]

    def directory() -> OfficeDirectory:
        if stumbles.pop(0) if stumbles else False:
            raise RuntimeError("a stone")
        return DIRECTORY

    await a_book(room, clock).add("coder", "x", cron="0 9 * * *")
    work = Scheduler(room, directory, clock, overlap=True)
    clock.set(moment(NINE))
    assert await work.round() == PAUSE_S
    assert "a stone" in caplog.text
    await work.round()
    assert len(await mail(room)) == 1


async def test_daylight_saving_sends_each_day_once(room: Room, clock: ManualClock) -> None:
    clock.set(moment("2026-03-27T12:00Z"))
    await furnish(room)
    book, work = a_book(room, clock, zone="Europe/Berlin"), a_clockwork(room, clock)
    await book.add("coder", "x", cron="30 2 * * *")
    for _ in range(4 * 24 * 2):
        clock.advance(1800)
        await work.round()
    assert slots(await mail(room)) == [
        "2026-03-28T01:30:00.000Z",
        "2026-03-29T01:00:00.000Z",
        "2026-03-30T00:30:00.000Z",
        "2026-03-31T00:30:00.000Z",
    ]


@pytest.mark.slow
async def test_ten_thousand_schedules_come_at_once(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    data = {"label": "x", "to": "coder", "text": "x", "cron": "0 9 * * *"}
    puts = [
        c.PutDocument(
            kind=kind, key=f"s{number:05}", data=data if kind == SCHEDULE else {"after": clock.now()}
        )
        for number in range(10_000)
        for kind in (SCHEDULE, PROGRESS)
    ]
    await room.run(c.Unit(commands=tuple(puts)))
    work = a_clockwork(room, clock)
    await work.round()
    clock.set(moment(NINE))
    await work.round()
    keys = {letter.idempotency_key for letter in await mail(room)}
    assert len(keys) == 10_000
    await work.round()
    assert len(await mail(room)) == 10_000
    assert len(work._times) == 10_000, "each waits for its next time, and nothing else is kept"


async def test_a_letter_to_a_team_goes_to_its_leader(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    book, work = a_book(room, clock), a_clockwork(room, clock)
    await book.add("dev", "x", cron="0 9 * * *", channel="telegram", sender="Ann", sender_id="42")
    clock.set(moment(NINE))
    await work.round()
    [letter] = await mail(room, DIRECTORY.leader_of("dev") or "")
    assert (letter.body["team"], letter.channel, letter.sender_id) == ("dev", "telegram", "42")


async def test_a_schedule_whose_run_is_not_over_sends_no_other(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    book, work = a_book(room, clock), Scheduler(room, lambda: DIRECTORY, clock)
    await book.add("coder", "Report", cron="0 * * * *", label="hourly")
    await book.add("lead", "Each", cron="0 * * * *", label="each", missed="all")
    for hour in (9, 10, 11):
        clock.set(moment(f"2026-05-05T{hour:02}:00Z"))
        await work.round()
    assert len(await mail(room)) == 1
    found = await book.look("hourly")
    assert (found.progress.fired, found.progress.problem) == (1, "what it sent before is still worked on")
    assert len(await mail(room, "lead")) == 3, "who wants all that was missed wants each"
    [claimed] = await room.claim(queues.inbox("coder"))
    await room.complete(claimed, {"answer": "done"})
    clock.set(moment("2026-05-05T12:00Z"))
    await work.round()
    assert slots(await mail(room)) == [NINE, "2026-05-05T12:00:00.000Z"]
    assert (await book.look("hourly")).progress.problem == ""
