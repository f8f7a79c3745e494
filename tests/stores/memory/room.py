"""A memory store with the kernel on top, and everything that can be read from it, for the tests beside it."""

import random
from collections.abc import Sequence
from typing import Any

from postroom.clock import ManualClock
from postroom.ids import SeededIds
from postroom.kernel import commands as c
from postroom.kernel.engine import CommandOutcome, Engine
from postroom.kernel.housekeeping.housekeepers import Retention
from postroom.kernel.limits import Limits
from postroom.kernel.model import NewMessage
from postroom.kernel.ports import MessageFilter, Transaction
from postroom.kernel.rows import Stored
from postroom.kernel.transitions.context import KernelEnvironment
from postroom.runtime.commit import Committer
from postroom.runtime.wakeups import Wakeups
from postroom.stores.memory import MemoryStore

MANY = 10_000


class Room:
    def __init__(self, retention: Retention | None = None) -> None:
        self.store = MemoryStore()
        self.clock = ManualClock()
        env = KernelEnvironment(
            clock=self.clock,
            ids=SeededIds(),
            limits=Limits(),
            retention=retention or Retention(),
            rng=random.Random(1),
        )
        self.engine = Engine(env)
        self.committer = Committer(self.store, self.engine, Wakeups())
        self.do = self.committer.execute
        self.do(c.CreateScope(slug="s"))

    def close(self) -> None:
        self.committer.close()
        self.store.close()

    def queue(self, slug: str, **settings: Any) -> int:
        return self.do(c.CreateQueue(queue=f"s/{slug}", settings=settings)).id

    def publish(self, slug: str, *bodies: Any, **fields: Any) -> list[str]:
        messages = [NewMessage(body=body, **fields) for body in bodies]
        return [receipt.id for receipt in self.do(c.Publish(queue=f"s/{slug}", messages=messages))]

    def claim(self, slug: str, limit: int = 1, subscription: str | None = None) -> list[Stored]:
        command = c.Claim(queues=(f"s/{slug}",), limit=limit, subscription=subscription)
        return self.do(command).messages

    def complete(self, *claimed: Stored) -> None:
        for stored in claimed:
            self.do(c.Complete(message_id=stored.row.id, token=stored.row.token or ""))

    def together(self, commands: Sequence[c.Command]) -> list[CommandOutcome]:
        """As one group of requests; each has its own outcome."""
        tx = self.store.begin()
        outcomes, _ = self.engine.apply(tx, commands)
        self.store.commit(tx)
        return outcomes

    def apply(self, tx: Transaction, commands: Sequence[c.Command]) -> None:
        """Every command must succeed."""
        for outcome in self.engine.apply(tx, commands)[0]:
            outcome.result()

    def page(self, after: int | None = None, limit: int = MANY, **wanted: Any) -> list[Stored]:
        with self.store.reader() as reader:
            return reader.page(MessageFilter(**wanted), after, limit)

    def bodies(self, **wanted: Any) -> list[bytes | None]:
        return [stored.content.body for stored in self.page(**wanted)]


def everything(store: MemoryStore) -> dict[str, Any]:
    """All that readers and a writer can see, so that two moments can be compared."""
    with store.reader() as reader:
        queues = reader.queue_names()
        subscriptions = reader.subscription_names()
        seen: dict[str, Any] = {
            "messages": reader.page(MessageFilter(deliveries=True), None, MANY),
            "backwards": reader.page(MessageFilter(deliveries=True, newest_first=True), None, MANY),
            "events": reader.events(0, MANY),
            "head": reader.head(),
            "anchor": reader.anchor(),
            "folded": reader.folded(),
            "scopes": reader.scopes("default"),
            "queues": reader.queues("default", None),
            "queue names": queues,
            "scope by name": [reader.scope("default", slug) for slug in ("s", "spare", "other")],
            "queue by name": [reader.queue("default", *name) for name in queues.values()],
            "subscriptions": [reader.subscriptions(queue_id) for queue_id in queues],
            "schemas": [reader.schemas("default", slug) for slug in ("s", "spare")],
            "records": reader.records("default", "turn", None, 0, MANY),
            "positions": reader.positions(),
            "runs": reader.housekeepers(),
            "leader": reader.leader("x", 1),
            "counts": [reader.counts(q, s) for q in queues for s in (0, *subscriptions)],
        }
    tx = store.begin()
    try:
        states = ("pending", "delayed", "claimed", "completed", "dead", "expired", "cancelled")
        seen |= {
            "pending": [tx.pending(line, MANY) for line in (*queues, *(-s for s in subscriptions))],
            "on line": [tx.on_line(line) for line in (*queues, *(-s for s in subscriptions))],
            "due": tx.due(2**60, MANY),
            "in state": [tx.rows_in_state(q, state, MANY) for q in queues for state in states],
            "open rows": [tx.open_rows(q, 0, MANY) for q in queues],
            "originals": [tx.originals(q) for q in queues],
            "ended": [tx.ended_in(q, MANY) for q in queues],
            "dead from": [tx.dead_from(q) for q in queues],
            "prunable": [tx.prunable(q, 2**60, None, MANY) for q in queues],
            "deliveries": [tx.deliveries(stored.row.id) for stored in seen["messages"]],
            "keys": [tx.by_key(q, f"key {n}") for q in queues for n in range(10)],
            "aging": tx.aging(2**60, 1001, 0, MANY),
            "finished": tx.finished(2**60, MANY),
            "dead": tx.dead_before(2**60, MANY),
            "seen": [tx.seen(s, f"{n}", 1) for s in subscriptions for n in range(4)],
            "memos": [tx.memo(f"dead_letters:{q}") for q in queues],
            "last time": tx.last_time(),
        }
    finally:
        store.rollback(tx)
    return seen
