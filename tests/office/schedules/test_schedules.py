"""Schedules are added, listed, changed, paused, removed and sent now; what is wrong is told by field."""

import asyncio
from typing import Any

import pytest
from tests.office.schedules.desk import a_book, furnish, mail, moment

from postroom import Room
from postroom.clock import SECOND, ManualClock
from postroom.errors import InvalidField
from postroom.office.schedules.errors import (
    InvalidCron,
    LabelTaken,
    NoSuchTarget,
    NotInFuture,
    ScheduleNotFound,
)
from postroom.office.schedules.model import LABEL, PROGRESS, SCHEDULE, Missed
from postroom.office.schedules.schedules import upcoming


async def test_a_schedule_is_kept_as_it_was_made(room: Room, clock: ManualClock) -> None:
    book = a_book(room, clock, zone="Europe/Berlin")
    made = await book.add("coder", "Daily report", cron="0 9 * * *", label="daily")
    assert (made.label, made.to, made.text, made.cron) == ("daily", "coder", "Daily report", "0 9 * * *")
    assert (made.zone, made.channel, made.sender) == ("Europe/Berlin", "schedule", "Scheduler")
    assert (made.enabled, made.missed, made.created_at) == (True, Missed.ONCE, clock.now())
    assert await book.show(made.id) == await book.show("daily") == made
    assert await book.all() == [made]


async def test_an_unnamed_schedule_gets_a_label(room: Room, clock: ManualClock) -> None:
    book = a_book(room, clock)
    one = await book.add("coder", "x", cron="@daily")
    other = await book.add("coder", "x", cron="@daily")
    assert one.label.startswith("sched-")
    assert one.label != other.label
    assert one.id != other.id


async def test_schedules_are_listed_in_order_and_by_addressee(room: Room, clock: ManualClock) -> None:
    book = a_book(room, clock)
    for number, to in enumerate(("coder", "lead", "coder", "dev")):
        await book.add(to, "x", cron="@daily", label=f"n{number}")
        clock.advance(1)
    assert [schedule.label for schedule in await book.all()] == ["n0", "n1", "n2", "n3"]
    assert [schedule.label for schedule in await book.all("coder")] == ["n0", "n2"]


async def test_names_of_agents_and_teams_become_their_ids(room: Room, clock: ManualClock) -> None:
    book = a_book(room, clock)
    assert (await book.add("CODER", "x", cron="@daily")).to == "coder"
    assert (await book.add("Dev", "x", cron="@daily")).to == "dev"


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"to": "ghost"}, NoSuchTarget, "ghost"),
    ({"to": None}, NoSuchTarget, "None"),
    ({"text": ""}, InvalidField, "text"),
    ({"text": "  "}, InvalidField, "text"),
    ({"text": "x" * 60_001}, InvalidField, "text"),
    ({"text": "half a \ud83d smile"}, InvalidField, "text"),
    ({"cron": ""}, InvalidField, "cron"),
    ({"cron": "nope"}, InvalidCron, "nope"),
    ({"cron": "* * */20 * 1L"}, InvalidCron, "fifty years"),
    ({"cron": "0 0 0 1 1 * 2020"}, InvalidCron, "fifty years"),
    ({"at": 2**40 * SECOND}, InvalidField, "not both"),
    ({"zone": "Mars/Olympus"}, InvalidField, "zone"),
    ({"label": "a/b"}, InvalidField, "label"),
    ({"label": " x"}, InvalidField, "label"),
    ({"label": "a\nb"}, InvalidField, "label"),
    ({"label": "x" * 200}, InvalidField, "label"),
    ({"label": 5}, InvalidField, "label"),
    ({"channel": "Tele gram"}, InvalidField, "channel"),
    ({"channel": "../x"}, InvalidField, "channel"),
    ({"sender": "x" * 201}, InvalidField, "sender"),
    ({"missed": "sometimes"}, InvalidField, "missed"),
    ({"enabled": "yes"}, InvalidField, "enabled"),
]


@pytest.mark.parametrize(("wrong", "error", "word"), WRONG, ids=lambda value: str(value)[:40])
async def test_what_is_wrong_is_refused_and_nothing_is_kept(
    room: Room, clock: ManualClock, wrong: dict[str, Any], error: type[Exception], word: str
) -> None:
    book = a_book(room, clock)
    fields: dict[str, Any] = {"to": "coder", "text": "x", "cron": "@daily", **wrong}
    with pytest.raises(error, match=word):
        await book.add(fields.pop("to"), fields.pop("text"), **fields)
    for kind in (SCHEDULE, PROGRESS, LABEL):
        assert await room.documents(kind) == []


async def test_a_time_that_is_past_is_refused(room: Room, clock: ManualClock) -> None:
    book = a_book(room, clock)
    for at in (clock.now(), clock.now() - SECOND):
        with pytest.raises(NotInFuture):
            await book.add("coder", "x", at=at)
    once = await book.add("coder", "x", at=clock.now() + SECOND)
    assert await book.preview(once.id) == [clock.now() + SECOND]
    with pytest.raises(NotInFuture):
        await book.change(once.id, at=clock.now() - SECOND)
    with pytest.raises(InvalidField, match="at"):
        await book.change(once.id, at="2030-01-01")


async def test_a_label_belongs_to_one_schedule(room: Room, clock: ManualClock) -> None:
    book = a_book(room, clock)
    await book.add("coder", "x", cron="@daily", label="daily")
    other = await book.add("coder", "x", cron="@daily", label="other")
    with pytest.raises(LabelTaken, match="daily"):
        await book.add("coder", "y", cron="@daily", label="daily")
    with pytest.raises(LabelTaken, match="daily"):
        await book.change("other", label="daily")
    assert await book.show("other") == other
    await book.remove("daily")
    assert (await book.change("other", label="daily")).id == other.id
    with pytest.raises(ScheduleNotFound):
        await book.show("other")


async def test_of_many_who_choose_a_label_at_once_one_gets_it(room: Room, clock: ManualClock) -> None:
    book = a_book(room, clock)
    adding = [book.add("coder", str(n), cron="@daily", label="mine") for n in range(10)]
    outcomes = await asyncio.gather(*adding, return_exceptions=True)
    assert sum(isinstance(outcome, LabelTaken) for outcome in outcomes) == 9
    assert len(await book.all()) == 1


async def test_a_change_keeps_the_rest(room: Room, clock: ManualClock) -> None:
    book = a_book(room, clock)
    made = await book.add("coder", "x", cron="@daily", label="daily", missed="all")
    clock.advance(5)
    changed = await book.change("daily", text="y", enabled=False)
    assert (changed.text, changed.enabled, changed.cron, changed.missed) == ("y", False, "@daily", Missed.ALL)
    assert (changed.created_at, changed.updated_at) == (made.created_at, clock.now())
    once = await book.change("daily", at=clock.now() + SECOND)
    assert (once.cron, once.at) == ("", clock.now() + SECOND)
    again = await book.change("daily", cron="@hourly")
    assert (again.cron, again.at) == ("@hourly", None)


async def test_a_wrong_change_changes_nothing(room: Room, clock: ManualClock) -> None:
    book = a_book(room, clock)
    made = await book.add("coder", "x", cron="@daily", label="daily")
    for wrong in ({"cron": "nope"}, {"to": "ghost"}, {"id": "5"}, {"text": ""}, {"zone": "x"}, {"label": ""}):
        with pytest.raises((InvalidCron, NoSuchTarget, InvalidField)):
            await book.change("daily", **wrong)
    assert await book.show("daily") == made


async def test_many_changes_at_once_are_all_made(room: Room, clock: ManualClock) -> None:
    book = a_book(room, clock)
    await book.add("coder", "x", cron="@daily", label="daily")
    await asyncio.gather(
        book.change("daily", text="y"), book.change("daily", sender="Z"), book.change("daily", cron="@hourly")
    )
    changed = await book.show("daily")
    assert (changed.text, changed.sender, changed.cron) == ("y", "Z", "@hourly")


async def test_a_removed_schedule_is_gone(room: Room, clock: ManualClock) -> None:
    book = a_book(room, clock)
    made = await book.add("coder", "x", cron="@daily", label="daily")
    assert await book.remove("daily") == made
    for name in (made.id, "daily", "ghost", "", "half a \ud83d smile"):
        with pytest.raises(ScheduleNotFound):
            await book.remove(name)
    assert await book.all() == []
    for kind in (SCHEDULE, PROGRESS, LABEL):
        assert await room.documents(kind) == []


async def test_of_many_who_remove_it_one_does(room: Room, clock: ManualClock) -> None:
    book = a_book(room, clock)
    await book.add("coder", "x", cron="@daily", label="daily")
    removing = [book.remove("daily") for _ in range(5)]
    outcomes = await asyncio.gather(*removing, book.change("daily", label="other"), return_exceptions=True)
    gone = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert all(isinstance(outcome, ScheduleNotFound) for outcome in gone), gone
    for left in await book.all():
        await book.remove(left.label)
    for kind in (SCHEDULE, PROGRESS, LABEL):
        assert await room.documents(kind) == []


async def test_what_comes_next_can_be_seen(room: Room, clock: ManualClock) -> None:
    clock.set(moment("2026-03-28T12:00Z"))
    book = a_book(room, clock, zone="Europe/Berlin")
    await book.add("coder", "x", cron="30 2 * * *", label="early")
    assert await book.preview("early", 2) == [moment("2026-03-29T01:00Z"), moment("2026-03-30T00:30Z")]
    await book.pause("early")
    assert await book.preview("early") == []
    assert len(upcoming("* * * * *", "UTC", clock.now(), 100)) == 100
    for count in (0, 101):
        with pytest.raises(InvalidField, match="count"):
            upcoming("* * * * *", "UTC", clock.now(), count)


async def test_a_schedule_can_be_sent_now_also_when_paused(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    book = a_book(room, clock)
    await book.add("dev", "go", cron="@daily", label="daily", enabled=False)
    for _ in range(2):
        assert (await book.run_now("daily")).created
    letters = await mail(room, "lead")
    assert [letter.body["text"] for letter in letters] == ["go", "go"]
    assert [letter.body["team"] for letter in letters] == ["dev", "dev"]
