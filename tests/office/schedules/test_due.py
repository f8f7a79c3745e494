"""What becomes of times that have come: sent, made up once or each, or passed over; always bounded."""

from typing import Any

import pytest
from tests.office.schedules.desk import moment

from postroom.clock import SECOND
from postroom.kernel.schedules.due import AT_MOST, GRACE
from postroom.office.schedules.due import due
from postroom.office.schedules.model import Missed, Schedule, ScheduleProgress, StoredSchedule

HOUR, DAY = 3600 * SECOND, 86_400 * SECOND
NINE = moment("2026-05-05T09:00Z")


def a_filed(after: int, missed: Missed = Missed.ONCE, **fields: Any) -> StoredSchedule:
    fields = {"cron": "0 9 * * *", **fields}
    schedule = Schedule(id="1", label="daily", to="coder", text="report", missed=missed, **fields)
    return StoredSchedule(schedule, 1, ScheduleProgress(after=after), 1)


def test_nothing_is_due_before_its_time() -> None:
    assert due(a_filed(NINE - HOUR), NINE - 1) is None


@pytest.mark.parametrize("missed", Missed)
def test_what_comes_in_time_is_sent_whatever_the_policy(missed: Missed) -> None:
    for late in (0, 1, GRACE):
        come = due(a_filed(NINE - HOUR, missed), NINE + late)
        assert come is not None
        assert (come.slots, come.after, come.skipped) == ((NINE,), NINE, False)


def test_what_was_sent_for_is_not_due_again() -> None:
    assert due(a_filed(NINE), NINE + HOUR) is None


def test_missed_times_are_skipped() -> None:
    come = due(a_filed(NINE - HOUR, Missed.SKIP), NINE + 3 * DAY + HOUR)
    assert come is not None
    assert (come.slots, come.after, come.skipped) == ((), NINE + 3 * DAY, True)


def test_missed_times_are_skipped_but_not_the_one_that_has_just_come() -> None:
    come = due(a_filed(NINE - HOUR, Missed.SKIP), NINE + 3 * DAY + 5 * SECOND)
    assert come is not None
    assert (come.slots, come.skipped) == ((NINE + 3 * DAY,), True)


def test_missed_times_are_made_up_once() -> None:
    come = due(a_filed(NINE - HOUR, Missed.ONCE), NINE + 3 * DAY + HOUR)
    assert come is not None
    assert (come.slots, come.after, come.skipped) == ((NINE + 3 * DAY,), NINE + 3 * DAY, True)


def test_missed_times_are_all_made_up_in_order() -> None:
    come = due(a_filed(NINE - HOUR, Missed.ALL), NINE + 3 * DAY + HOUR)
    assert come is not None
    assert come.slots == tuple(NINE + n * DAY for n in range(4))
    assert not come.skipped


def test_all_has_an_end() -> None:
    come = due(a_filed(NINE - HOUR, Missed.ALL), NINE + 1000 * DAY)
    assert come is not None
    assert come.slots == tuple(NINE + n * DAY for n in range(1001 - AT_MOST, 1001))
    assert come.skipped


@pytest.mark.parametrize("missed", Missed)
def test_a_year_of_seconds_slept_through_is_found_at_once(missed: Missed) -> None:
    now = NINE + 365 * DAY
    come = due(a_filed(NINE, missed, cron="* * * * * *"), now)
    assert come is not None
    assert come.after == now
    assert len(come.slots) == (AT_MOST if missed is Missed.ALL else 1)


@pytest.mark.parametrize("missed", Missed)
def test_what_is_rare_is_found_however_long_ago(missed: Missed) -> None:
    leap = moment("2028-02-29T00:00Z")
    come = due(a_filed(NINE, missed, cron="0 0 29 2 *"), leap + 1000 * DAY)
    assert come is not None
    assert come.after == leap
    assert come.slots == (() if missed is Missed.SKIP else (leap,))


def test_one_time_is_due_once_and_late_by_policy() -> None:
    fields: dict[str, Any] = {"cron": "", "at": NINE}
    assert due(a_filed(NINE - DAY, **fields), NINE - 1) is None
    for missed, slots in ((Missed.SKIP, ()), (Missed.ONCE, (NINE,)), (Missed.ALL, (NINE,))):
        come = due(a_filed(NINE - DAY, missed, **fields), NINE + DAY)
        assert come is not None
        assert (come.slots, come.after) == (slots, NINE)
    assert due(a_filed(NINE, **fields), NINE + DAY) is None


def test_a_paused_schedule_is_never_due() -> None:
    assert due(a_filed(NINE - DAY, enabled=False), NINE + DAY) is None
