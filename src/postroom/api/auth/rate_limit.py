"""How often somebody may try: a bucket for each address, refilled over a minute. It forgets the oldest."""

import math
from collections import OrderedDict
from collections.abc import Mapping

from postroom.clock import SECOND, Clock
from postroom.services.shared_counts import is_notable

MOST_ADDRESSES = 10_000


class RateLimiter:
    def __init__(self, name: str, clock: Clock, per_minute: int) -> None:
        self._name = name
        self._clock = clock
        self.per_minute = per_minute
        self._spent: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._others: Mapping[str, int] = {}

    def counts(self) -> dict[str, int]:
        """For the other processes."""
        spent = {who: math.ceil(self._now_spent(who)) for who in self._spent}
        return {
            f"{self._name}/{who}": count for who, count in spent.items() if is_notable(count, self.per_minute)
        }

    def learn(self, others: Mapping[str, int]) -> None:
        self._others = others

    def _now_spent(self, who: str) -> float:
        spent, at = self._spent.get(who, (0.0, 0))
        passed = (self._clock.now() - at) / SECOND
        return max(0.0, spent - max(0.0, passed) * self.per_minute / 60)

    def spend(self, who: str) -> None:
        self._spent[who] = (self._now_spent(who) + 1, self._clock.now())
        self._spent.move_to_end(who)
        while len(self._spent) > MOST_ADDRESSES:
            self._spent.popitem(last=False)

    def wait(self, who: str) -> int:
        """Seconds until the next try; 0 when there is no need to wait."""
        spent = self._now_spent(who) + self._others.get(f"{self._name}/{who}", 0)
        over = spent + 1 - self.per_minute
        return 0 if over <= 0 else max(1, round(over * 60 / self.per_minute + 0.5))
