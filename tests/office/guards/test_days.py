"""A day is the day people see, also when the clocks change."""

from datetime import UTC, datetime

import pytest

from postroom.clock import SECOND, from_datetime
from postroom.office.guards.days import Days


def moment(text: str) -> int:
    return from_datetime(datetime.fromisoformat(text))


@pytest.mark.parametrize(
    ("zone", "now", "day", "end"),
    [
        ("UTC", "2026-11-16T23:59:59+00:00", "2026-11-16", "2026-11-17T00:00:00+00:00"),
        ("UTC", "2026-11-17T00:00:00+00:00", "2026-11-17", "2026-11-18T00:00:00+00:00"),
        ("Europe/Berlin", "2026-11-16T22:59:59+00:00", "2026-11-16", "2026-11-16T23:00:00+00:00"),
        ("Europe/Berlin", "2026-11-16T23:00:00+00:00", "2026-11-17", "2026-11-17T23:00:00+00:00"),
        # 25 hours, and 23.
        ("Europe/Berlin", "2026-10-24T22:00:00+00:00", "2026-10-25", "2026-10-25T23:00:00+00:00"),
        ("Europe/Berlin", "2026-03-28T23:00:00+00:00", "2026-03-29", "2026-03-29T22:00:00+00:00"),
        # Clocks that are put forward at midnight: the day begins at one.
        ("Asia/Beirut", "2026-03-28T21:59:59+00:00", "2026-03-28", "2026-03-28T22:00:00+00:00"),
        ("Pacific/Kiritimati", "2026-12-31T09:59:00+00:00", "2026-12-31", "2026-12-31T10:00:00+00:00"),
    ],
)
def test_a_moment_belongs_to_a_day_that_ends_at_midnight(zone: str, now: str, day: str, end: str) -> None:
    days = Days(zone)
    assert days.of(moment(now)) == day
    assert datetime.fromtimestamp(days.end(day) / SECOND, UTC) == datetime.fromisoformat(end)
    assert days.of(days.end(day)) != day
    assert days.of(days.end(day) - 1) == day
