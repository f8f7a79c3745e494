"""How many messages of a queue may be handed out in a time: by line, or by the value of a label of each.

A bucket holds as many as the limit and fills evenly. Of a queue that has no limit, nothing is kept or asked.
"""

import msgspec

from postroom.clock import micros
from postroom.kernel import jsontext
from postroom.kernel.facts import RATE
from postroom.kernel.model import Queue
from postroom.kernel.rows import Stored
from postroom.kernel.states import Change, State
from postroom.kernel.transitions.context import TransitionContext

# So many are put off by one claim; those behind them meet the next.
MOST_DEFERRED = 1000


class Bucket(msgspec.Struct):
    """`full_at` is when it will be full again; `last_slot` the latest time to which a message was put off."""

    full_at: int = 0
    last_slot: int = 0


class ClaimRate:
    """The limit of one queue as one claim of one line meets it."""

    def __init__(self, ctx: TransitionContext, queue: Queue, line: int) -> None:
        settings = queue.settings
        assert settings.rate_limit is not None
        self._ctx = ctx
        self._line = line
        self._period = micros(settings.rate_period_s)
        self._interval = max(1, self._period // settings.rate_limit)
        self.label = settings.rate_key
        self.deferred = 0
        self._buckets: dict[str, Bucket] = {}
        self._spent: set[str] = set()

    def free(self, key: str = "") -> int:
        bucket = self._bucket(key)
        return max(0, (self._ctx.now + self._period - bucket.full_at) // self._interval)

    def next_at(self, key: str = "") -> int:
        """When the next one may go, if none may now."""
        return self._bucket(key).full_at - self._period + self._interval

    def spend(self, count: int, key: str = "") -> None:
        if count:
            self._bucket(key).full_at += count * self._interval
            self._spent.add(key)

    def admit(self, found: list[Stored]) -> list[Stored]:
        """Those whose label allows it; the others are put off, each to a time of its own."""
        admitted: list[Stored] = []
        for stored in found:
            key = self._key_of(stored)
            if self.free(key):
                self.spend(1, key)
                admitted.append(stored)
            else:
                self._defer(stored, key)
        return admitted

    def save(self) -> None:
        for key in sorted(self._spent):
            self._ctx.session.remember(RATE, self._name(key), self._buckets[key], self._ctx.now)

    def _defer(self, stored: Stored, key: str) -> None:
        bucket = self._bucket(key)
        bucket.last_slot = max(self.next_at(key), bucket.last_slot + self._interval)
        self._spent.add(key)
        stored.row.visible_at = bucket.last_slot
        self._ctx.move(stored.row, Change.HELD, State.DELAYED, visible_at=bucket.last_slot, rate=key)
        self.deferred += 1

    def _key_of(self, stored: Stored) -> str:
        labels = jsontext.decode(stored.content.labels) if stored.content.labels else {}
        return jsontext.text(labels[self.label]) if self.label in labels else ""

    def _bucket(self, key: str) -> Bucket:
        bucket = self._buckets.get(key)
        if bucket is None:
            fact = self._ctx.session.fact(RATE, self._name(key))
            bucket = Bucket() if fact is None else msgspec.json.decode(fact.data, type=Bucket)
            bucket.full_at = max(bucket.full_at, self._ctx.now)
            self._buckets[key] = bucket
        return bucket

    def _name(self, key: str) -> str:
        return f"{self._line}/{key}"
