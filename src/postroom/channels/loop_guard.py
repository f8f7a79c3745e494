"""A guard against programs that answer each other: who writes too much within a while is slowed down.

It only counts; it forgets with the process, and never loses a message.
"""

from collections import deque

from postroom.clock import SECOND, Clock

MOST_SENDERS = 10_000


class LoopGuard:
    def __init__(self, clock: Clock, *, events: int = 20, window_s: float = 60.0) -> None:
        self._clock = clock
        self._events = events
        self._window_s = window_s
        self._seen: dict[str, deque[int]] = {}

    def count(self, sender: str) -> float:
        """Counts one more, and says for how many seconds its handling must wait."""
        if not self._events:
            return 0
        now = self._clock.now()
        seen = self._seen.pop(sender, None) or deque()
        self._seen[sender] = seen
        if len(self._seen) > MOST_SENDERS:
            del self._seen[next(iter(self._seen))]
        while seen and now - seen[0] > self._window_s * SECOND:
            seen.popleft()
        if len(seen) < self._events:
            seen.append(now)
            return 0
        seen.clear()
        return self._window_s
