"""Which times of a schedule of the office have come."""

from collections.abc import Iterator

from postroom.kernel.schedules.cron import Cron
from postroom.kernel.schedules.due import AT_MOST, DueTimes, find_due
from postroom.office.schedules.model import StoredSchedule


def due(filed: StoredSchedule, now: int, *, at_most: int = AT_MOST) -> DueTimes | None:
    """None when nothing has come."""
    schedule = filed.schedule
    if not schedule.enabled:
        return None

    def times(after: int) -> Iterator[int]:
        if schedule.at is not None:
            return iter([schedule.at] if schedule.at > after else [])
        return Cron(schedule.cron, schedule.zone).times(after)

    return find_due(times, schedule.missed, filed.progress.after, now, at_most=at_most)
