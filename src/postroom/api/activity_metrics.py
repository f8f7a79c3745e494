"""What happened since the server started, as counters and histograms for Prometheus.

Counted from the ledger when somebody asks, so nothing is counted twice and nobody else pays for it. Labels
are bounded: names beyond the limit are counted together as `other`.
"""

import asyncio

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from postroom.clock import SECOND
from postroom.kernel.ledger import Event
from postroom.kernel.states import Change, State
from postroom.runtime import Room

PAGE = 1000
MOST_EVENTS = 100_000
"""Of one answer; the next one goes on."""
MOST_KNOWN = 100_000
MOST_NAMES = 200
OTHER = "other"
SPANS = (0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 14400)
QUEUE = ("scope", "queue")
TOKENS = ("input", "cache_read", "cache_write", "output")
_COUNTED: dict[str, str] = {
    Change.PUBLISHED: "accepted",
    Change.CLAIMED: "claimed",
    Change.COMPLETED: "completed",
    Change.DEAD_LETTERED: "dead",
}
_WAITS_AGAIN = (State.PENDING, State.DELAYED)


class BoundedNames:
    """At most so many different labels; whoever comes later is `other`."""

    def __init__(self, most: int = MOST_NAMES) -> None:
        self._most = most
        self._known: set[tuple[str, ...]] = set()

    def fit(self, *names: str) -> tuple[str, ...]:
        if names not in self._known:
            if len(self._known) >= self._most:
                return (OTHER,) * len(names)
            self._known.add(names)
        return names


class ActivityMetrics:
    def __init__(self, room: Room, registry: CollectorRegistry) -> None:
        self._room = room
        self._lock = asyncio.Lock()
        self._position: int | None = None
        self._ready: dict[str, int] = {}
        self._claimed: dict[str, int] = {}
        self._queues, self._turns, self._models = BoundedNames(), BoundedNames(), BoundedNames()

        def count(name: str, about: str, labels: tuple[str, ...]) -> Counter:
            return Counter(f"postroom_{name}", about, labels, registry=registry)

        self._messages = {
            name: count(f"messages_{name}", f"Messages that were {name}", QUEUE) for name in _COUNTED.values()
        }
        self._retried = count("messages_retried", "Attempts that failed and are made again", QUEUE)
        self._wait = Histogram(
            "postroom_message_wait_seconds",
            "From claimable to claimed",
            QUEUE,
            buckets=SPANS,
            registry=registry,
        )
        self._run = Histogram(
            "postroom_message_run_seconds",
            "From claimed to given back",
            QUEUE,
            buckets=SPANS,
            registry=registry,
        )
        self._turn = count("turns", "Turns of agents", ("agent", "provider", "outcome"))
        self._tokens = count("turn_tokens", "Tokens of turns", ("model", "kind"))
        self._cost = count("turn_cost_usd", "What turns cost, where a price is known", ("agent", "provider"))
        self._delivered = count("deliveries", "Answers on their way to people", ("channel", "outcome"))
        self._behind = Gauge("postroom_metrics_behind_events", "Events not counted yet", registry=registry)

    async def begin(self) -> None:
        """From here on."""
        if self._position is None:
            self._position = (await self._room.head()).seq

    async def catch_up(self) -> None:
        await self.begin()
        async with self._lock:
            assert self._position is not None
            for _ in range(MOST_EVENTS // PAGE):
                events = await self._room.read_events(self._position, PAGE)
                for event in events:
                    await self._count(event)
                    self._position = event.seq
                if len(events) < PAGE:
                    break
            self._behind.set((await self._room.head()).seq - self._position)

    async def _count(self, event: Event) -> None:
        if event.type == "record.turn":
            await self._count_turn(str(event.details.get("key")))
        elif event.type.startswith("message.") and event.message_id is not None:
            self._count_change(event, event.message_id)

    def _count_change(self, event: Event, message_id: str) -> None:
        told = event.details
        labels = self._queues.fit(event.scope or "", str(told.get("from") or event.queue or ""))
        state = told.get("state")
        if name := _COUNTED.get(event.type):
            self._messages[name].labels(*labels).inc()
        if event.type in (Change.FAILED, Change.LEASE_EXPIRED) and state in _WAITS_AGAIN:
            self._retried.labels(*labels).inc()
        if state == State.CLAIMED:
            self._claimed.setdefault(message_id, event.time)
            if (since := self._ready.pop(message_id, None)) is not None:
                self._wait.labels(*labels).observe((event.time - since) / SECOND)
        elif (begun := self._claimed.pop(message_id, None)) is not None:
            self._run.labels(*labels).observe((event.time - begun) / SECOND)
        if state == State.PENDING:
            self._ready.setdefault(message_id, event.time)
        elif state != State.CLAIMED:
            self._ready.pop(message_id, None)
        for known in (self._ready, self._claimed):
            while len(known) > MOST_KNOWN:
                del known[next(iter(known))]
        if labels[1].startswith("outbox/") and state in (State.COMPLETED, State.DEAD, State.EXPIRED):
            self._delivered.labels(labels[1].removeprefix("outbox/"), str(state)).inc()

    async def _count_turn(self, key: str) -> None:
        found = await self._room.latest_record("turn", key)
        if found is None:
            return
        told = found.data
        agent, provider = self._turns.fit(str(told.get("agent")), str(told.get("provider")))
        self._turn.labels(agent, provider, str(told.get("outcome"))).inc()
        if told.get("cost_usd") is not None:
            self._cost.labels(agent, provider).inc(max(0.0, float(told["cost_usd"])))
        for usage in told.get("usage") or ():
            [model] = self._models.fit(str(usage.get("model")))
            for kind in TOKENS:
                self._tokens.labels(model, kind).inc(usage.get(f"{kind}_tokens") or 0)
