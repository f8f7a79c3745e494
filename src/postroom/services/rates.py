"""How many requests a minute: per key, user, tenant and partner, all of which apply, in a sliding window."""

import math
from collections import deque
from collections.abc import Iterable, Mapping

import msgspec

from postroom.clock import SECOND, Clock
from postroom.services.errors import RequestLimitReached
from postroom.services.shared_counts import is_notable

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
    """Moments of the requests of the last minute in this process; of others only how many there were."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, str], deque[int]] = {}
        self._limits: dict[tuple[str, str], int] = {}
        self._others: Mapping[str, int] = {}

    def counts(self) -> dict[str, int]:
        since = self._clock.now() - WINDOW
        found: dict[str, int] = {}
        for who, window in self._seen.items():
            count = sum(moment > since for moment in window)
            if is_notable(count, self._limits[who]):
                found["/".join(who)] = count
        return found

    def learn(self, others: Mapping[str, int]) -> None:
        self._others = others

    def spend(self, who: Iterable[tuple[str, str, int]]) -> Standing:
        """Count one request for each (kind, id, limit), or for none when one of them has no more."""
        now = self._clock.now()
        windows = [(kind, name, self._window(kind, name, limit, now), limit) for kind, name, limit in who]
        for kind, name, window, limit in windows:
            if self._used(kind, name, window) >= limit:
                seconds = max(1, math.ceil((window[0] + WINDOW - now) / SECOND)) if window else 60
                standing = Standing(limit, 0, seconds)
                raise RequestLimitReached(limit=limit, whose=kind, seconds=seconds, standing=standing)
        for _, _, window, _ in windows:
            window.append(now)
        left = [limit - self._used(kind, name, window) for kind, name, window, limit in windows]
        fewest = min(left)
        _, _, window, limit = windows[left.index(fewest)]
        return Standing(limit, fewest, math.ceil((window[0] + WINDOW - now) / SECOND))

    def _used(self, kind: str, name: str, window: deque[int]) -> int:
        return len(window) + self._others.get(f"{kind}/{name}", 0)

    def _window(self, kind: str, name: str, limit: int, now: int) -> deque[int]:
        if len(self._seen) > 10_000:
            self._forget(now)
        window = self._seen.setdefault((kind, name), deque())
        self._limits[kind, name] = limit
        while window and window[0] <= now - WINDOW:
            window.popleft()
        return window

    def _forget(self, now: int) -> None:
        for who in [who for who, window in self._seen.items() if not window or window[-1] <= now - WINDOW]:
            del self._seen[who]
            self._limits.pop(who, None)
