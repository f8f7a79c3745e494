"""Which times of a schedule have come, and what is to be done about those that were missed."""

from collections import deque
from itertools import islice, takewhile

import msgspec

from postroom.clock import SECOND
from postroom.office.schedules.cron import Cron
from postroom.office.schedules.model import Missed, Schedule, StoredSchedule

# A message this late is on time: a process may start slowly, a store may be busy.
GRACE = 60 * SECOND
AT_MOST = 100

_LOOKS_BACK = tuple(SECOND * seconds for seconds in (60, 3600, 86_400, 32 * 86_400, 366 * 86_400))


class DueTimes(msgspec.Struct, frozen=True):
    """The times to send for now; `after` is how far the schedule has then come."""

    slots: tuple[int, ...]
    after: int
    skipped: bool = False


def due(filed: StoredSchedule, now: int, *, at_most: int = AT_MOST) -> DueTimes | None:
    """None when nothing has come."""
    schedule = filed.schedule
    if not schedule.enabled:
        return None
    wanted = at_most if schedule.missed is Missed.ALL else 1
    come = _newest(schedule, filed.progress.after, now, wanted + 1)
    if not come:
        return None
    if schedule.missed is Missed.SKIP and now - come[-1] > GRACE:
        return DueTimes((), come[-1], True)
    return DueTimes(tuple(come[-wanted:]), come[-1], len(come) > wanted)


def _newest(schedule: Schedule, after: int, now: int, count: int) -> list[int]:
    """The last so many times that have come. Found from the present backwards in growing steps, since a
    schedule of every second may have slept for a year."""
    if schedule.at is not None:
        return [schedule.at] if after < schedule.at <= now else []
    cron = Cron(schedule.cron, schedule.zone)
    few = list(takewhile(lambda slot: slot <= now, islice(cron.times(after), 3)))
    if len(few) < 3:
        return few[-count:]
    for back in (*_LOOKS_BACK, now - after):
        start = max(after, now - back)
        found = deque(takewhile(lambda slot: slot <= now, cron.times(start)), maxlen=count)
        if len(found) == count or start == after:
            return list(found)
    return []
