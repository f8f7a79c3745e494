"""Which times have come, and what is to be done about those that were missed."""

from collections import deque
from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import islice, takewhile

import msgspec

from postroom.clock import SECOND

# A message this late is on time: a process may start slowly, a store may be busy.
GRACE = 60 * SECOND
AT_MOST = 100

_LOOKS_BACK = tuple(SECOND * seconds for seconds in (60, 3600, 86_400, 32 * 86_400, 366 * 86_400))

Times = Callable[[int], Iterator[int]]
"""All times after a moment, in order."""


class Missed(StrEnum):
    """What becomes of times that nobody was there for: nothing, one message for all of them, or each."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


class DueTimes(msgspec.Struct, frozen=True):
    """The times to send for now; `after` is how far the schedule has then come."""

    slots: tuple[int, ...]
    after: int
    skipped: bool = False


def find_due(
    times: Times, missed: Missed, after: int, now: int, *, at_most: int = AT_MOST
) -> DueTimes | None:
    """None when nothing has come."""
    wanted = at_most if missed is Missed.ALL else 1
    come = _newest(times, after, now, wanted + 1)
    if not come:
        return None
    if missed is Missed.SKIP and now - come[-1] > GRACE:
        return DueTimes((), come[-1], True)
    return DueTimes(tuple(come[-wanted:]), come[-1], len(come) > wanted)


def _newest(times: Times, after: int, now: int, count: int) -> list[int]:
    """The last so many times that have come. Found from the present backwards in growing steps, since a
    schedule of every second may have slept for a year."""
    few = list(takewhile(lambda slot: slot <= now, islice(times(after), 3)))
    if len(few) < 3:
        return few[-count:]
    for back in (*_LOOKS_BACK, now - after):
        start = max(after, now - back)
        found = deque(takewhile(lambda slot: slot <= now, times(start)), maxlen=count)
        if len(found) == count or start == after:
            return list(found)
    return []
