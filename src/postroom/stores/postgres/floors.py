"""Below what nothing live can be: of a line by its sort keys, and of all messages by when they come due.

What was claimed and completed leaves entries in the indexes, and while somebody's long query is open, the
server can drop none of them: who looks for the first message of a line would pass them all each time. So each
process remembers where the living begin. New messages come at the end of their line; what becomes claimable
elsewhere is counted by line in the store, in the same commit; who finds another count looks from the start.
"""

import threading
import time
from collections.abc import Callable

import msgspec

LOWEST = -(2**63)
# How often a floor is raised, less often where nothing was found; and how often it is given up and found
# anew, whatever is known.
LOOK_S, EMPTY_S = 1.0, 10.0
AGAIN_S = 600.0
# Lines that nobody claims from any more are forgotten.
MOST_LINES = 10_000
# The count of returns of a line whose messages do not come in order.
UNORDERED = -1


class LineFloor(msgspec.Struct):
    returns: int
    key: int = LOWEST
    looked_at: float = 0.0
    begun_at: float = 0.0


class Floors:
    """Of one process; all its writers share it."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._lines: dict[int, LineFloor] = {}
        self._due = LineFloor(0)
        self._oldest: tuple[float, int] | None = None

    def oldest(self, ask: Callable[[], int]) -> int:
        """Before which nothing can come any more; what was found lately still holds."""
        now = self._now()
        if self._oldest is None or now - self._oldest[0] >= LOOK_S:
            self._oldest = (now, ask())
        return self._oldest[1]

    def line(self, line: int) -> tuple[int, int]:
        """The count of returns for which the floor holds, and the floor."""
        known = self._lines.get(line)
        return (UNORDERED, LOWEST) if known is None else (known.returns, known.key)

    def meet(self, line: int, returns: int, *, is_empty: bool = False) -> bool:
        """The store's count was read. Whether it is time to raise the floor."""
        now = self._now()
        with self._lock:
            known = self._lines.get(line)
            if known is None or known.returns != returns or now - known.begun_at >= AGAIN_S:
                if len(self._lines) >= MOST_LINES:
                    self._lines.clear()
                known = self._lines[line] = LineFloor(returns, begun_at=now)
            return returns != UNORDERED and self._is_time(known, now, EMPTY_S if is_empty else LOOK_S)

    def raise_line(self, line: int, returns: int, key: int) -> None:
        with self._lock:
            known = self._lines.get(line)
            if known is not None and known.returns == returns:
                known.key = max(known.key, key)

    def due(self) -> tuple[int, bool]:
        """The floor of what comes due, and whether it is time to raise it."""
        now = self._now()
        with self._lock:
            if now - self._due.begun_at >= AGAIN_S:
                self._due = LineFloor(0, begun_at=now)
            return self._due.key, self._is_time(self._due, now, LOOK_S)

    def raise_due(self, key: int) -> None:
        with self._lock:
            self._due.key = max(self._due.key, key)

    def _is_time(self, floor: LineFloor, now: float, pause: float) -> bool:
        if now - floor.looked_at < pause:
            return False
        floor.looked_at = now
        return True
