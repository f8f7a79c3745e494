"""How many requests a minute: per key, user, tenant and partner, all of which apply, in a sliding window."""

import math
from collections import deque
from collections.abc import Iterable

import msgspec

from postroom.clock import SECOND, Clock
from postroom.services.errors import RequestLimitReached

WINDOW = 60 * SECOND


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """Requests a minute. A tenant may have its own."""

    key: int = 60
    user: int = 120
    tenant: int = 1000
    partner: int = 5000


class Standing(msgspec.Struct, frozen=True):
    """What the headers of an answer say."""

    limit: int
    remaining: int
    reset_s: int

    def headers(self) -> dict[str, str]:
        return {
            "X-Scaigrid-Ratelimit-Limit": str(self.limit),
            "X-Scaigrid-Ratelimit-Remaining": str(self.remaining),
            "X-Scaigrid-Ratelimit-Reset": str(self.reset_s),
        }


class RateMeter:
    """Moments of the requests of the last minute. Kept by this process alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, str], deque[int]] = {}

    def spend(self, who: Iterable[tuple[str, str, int]]) -> Standing:
        """Count one request for each (kind, id, limit), or for none when one of them has no more."""
        now = self._clock.now()
        windows = [(kind, self._window(kind, name, now), limit) for kind, name, limit in who]
        for kind, window, limit in windows:
            if len(window) >= limit:
                seconds = max(1, math.ceil((window[0] + WINDOW - now) / SECOND)) if window else 60
                standing = Standing(limit, 0, seconds)
                raise RequestLimitReached(limit=limit, whose=kind, seconds=seconds, standing=standing)
        for _, window, _ in windows:
            window.append(now)
        _, window, limit = min(windows, key=lambda each: each[2] - len(each[1]))
        reset = math.ceil((window[0] + WINDOW - now) / SECOND)
        return Standing(limit, limit - len(window), reset)

    def _window(self, kind: str, name: str, now: int) -> deque[int]:
        if len(self._seen) > 10_000:
            self._forget(now)
        window = self._seen.setdefault((kind, name), deque())
        while window and window[0] <= now - WINDOW:
            window.popleft()
        return window

    def _forget(self, now: int) -> None:
        for who in [who for who, window in self._seen.items() if not window or window[-1] <= now - WINDOW]:
            del self._seen[who]
