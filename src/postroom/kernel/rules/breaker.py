"""The circuit breaker: a rule that meets the same conversation again and again within a minute is stopped."""

import threading
from collections import deque

from postroom.clock import SECOND

WINDOW = 60 * SECOND
MOST_MATCHES = 20
REST_S = 60
MOST_HOPS = 10
MOST_KNOWN = 10_000


class Breaker:
    """How often each rule has met each conversation lately. Kept by this process alone."""

    def __init__(self) -> None:
        self._met: dict[tuple[str, str], deque[int]] = {}
        self._lock = threading.Lock()

    def trips(self, rule_id: str, correlation_id: str, now: int) -> bool:
        """Count one match; whether it is one too many."""
        with self._lock:
            if len(self._met) > MOST_KNOWN:
                self._met = {who: met for who, met in self._met.items() if met[-1] > now - WINDOW}
            met = self._met.setdefault((rule_id, correlation_id), deque())
            while met and met[0] <= now - WINDOW:
                met.popleft()
            met.append(now)
            return len(met) > MOST_MATCHES

    def forget(self, rule_id: str) -> None:
        with self._lock:
            for who in [who for who in self._met if who[0] == rule_id]:
                del self._met[who]
