"""Whether the clock can be believed enough to delete by it: not right after it jumped ahead.

It is compared with how long the machine has run, which nobody sets. A machine that was asleep or off looks
the same as a clock that jumped, so nothing else waits for this.
"""

import logging
import time
from collections.abc import Callable

from postroom.clock import SECOND, Clock, iso, micros

log = logging.getLogger("postroom.housekeeping")

JUMP_S = 600.0
REST_S = 3600.0
# A process that starts cannot tell a wrong clock from a long rest; wrong ones are mostly put right by then.
GAP_S = 24 * 3600.0
START_REST_S = 600.0


def read_boot_time() -> int:
    """Also counts while the machine is asleep, where the system can tell."""
    name = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(name) // 1000


class ClockWatch:
    def __init__(self, clock: Clock, last_time: int, pace: Callable[[], int] = read_boot_time) -> None:
        """`last_time` is the newest that the store knows."""
        self._clock = clock
        self._pace = pace
        now, ran = clock.now(), pace()
        self._offset = now - ran
        is_long = last_time > 0 and now - last_time > micros(GAP_S)
        self._rests_until = ran + micros(START_REST_S) if is_long else ran

    def may_delete(self) -> bool:
        now, ran = self._clock.now(), self._pace()
        jumped, self._offset = now - ran - self._offset, now - ran
        if jumped > micros(JUMP_S):
            self._rests_until = ran + micros(REST_S)
            log.warning(
                "the clock jumped ahead by %d s to %s; for an hour nothing is deleted. Set it if wrong",
                jumped // SECOND,
                iso(now),
            )
        elif jumped < -micros(JUMP_S):
            self._rests_until = ran
            log.warning(
                "the clock was put back by %d s to %s; see: postroom doctor", -jumped // SECOND, iso(now)
            )
        return ran >= self._rests_until
