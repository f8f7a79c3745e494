"""Whatever happens, in whatever order: a rollback leaves no trace, and the ledger tells what there is."""

import random
from typing import Any

import pytest
from tests.stores.memory.room import MANY, Room, everything

from postroom.clock import SECOND
from postroom.kernel import commands as c
from postroom.kernel import ledger
from postroom.kernel.housekeeping import housekeepers
from postroom.kernel.housekeeping.housekeepers import Retention
from postroom.kernel.model import NewMessage
from postroom.kernel.rows import Stored

STEPS = 80
KEEPERS = [keeper.name for keeper in housekeepers.ROSTER if keeper.name != housekeepers.PRUNER]


class Walk:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.room = Room(Retention(archive_after_s=20, dead_after_s=60, aging_after_s=5))
        self.held: list[Stored] = []
        self.room.queue("fifo", max_retries=2)
        self.room.queue("urgent", ordering="priority")
        self.room.queue("small", max_depth=3, overflow_policy="dead_letter")
        self.room.queue("news", consumer_mode="broadcast", max_retries=1)
        for name in ("ann", "bob"):
            self.room.do(c.Subscribe(queue="s/news", name=name))

    def message(self) -> NewMessage:
        rng, now = self.rng, self.room.clock.now()
        return NewMessage(
            body=0,
            priority_score=rng.randrange(1001),
            idempotency_key=rng.choice([None, f"key {rng.randrange(10)}"]),
            ttl_s=rng.choice([None, 5.0, 30.0]),
            delay_until=rng.choice([None, now + rng.randrange(10) * SECOND]),
        )

    def step(self) -> c.Command:
        rng = self.rng
        slug = rng.choice(["fifo", "urgent", "small", "news"])
        match rng.randrange(6):
            case 0 | 1:
                messages = [self.message() for _ in range(rng.randrange(1, 4))]
                return c.Publish(queue=f"s/{slug}", messages=messages)
            case 2:
                subscription = rng.choice(["ann", "bob"]) if slug == "news" else None
                return c.Claim(queues=(f"s/{slug}",), limit=3, subscription=subscription)
            case 3 if self.held:
                return self.settling(rng.choice(self.held))
            case 4:
                return c.Housekeep(name=rng.choice(KEEPERS), limit=rng.choice([2, 100]))
            case _:
                verb = rng.choice([c.Replay, c.Discard])
                return c.Unit(commands=(verb(scope="s", limit=2), c.SetPosition(name="lake", seq=1)))

    def settling(self, stored: Stored) -> c.Command:
        held: dict[str, Any] = {"message_id": stored.row.id, "token": stored.row.token or ""}
        until = self.room.clock.now() + 3 * SECOND
        return self.rng.choice(
            [
                c.Complete(**held),
                c.Fail(**held, reason="broken"),
                c.Release(**held),
                c.Snooze(**held, until=until),
                c.Extend(**held),
                c.Cancel(message_id=stored.row.id),
            ]
        )

    def go(self) -> None:
        store, rng = self.room.store, self.rng
        commands = [self.step() for _ in range(rng.randrange(1, 4))]
        if rng.random() < 0.3:
            before = everything(store)
            tx = store.begin()
            self.room.engine.apply(tx, commands)
            store.rollback(tx)
            assert everything(store) == before
        outcomes = self.room.together(commands)
        for command, outcome in zip(commands, outcomes, strict=True):
            if isinstance(command, c.Claim):
                self.held += outcome.result().messages
        self.room.clock.advance(rng.choice([0, 1, 10]))


@pytest.mark.parametrize("seed", range(6))
def test_a_fold_of_the_ledger_gives_what_the_store_holds(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(STEPS):
        walk.go()
    with walk.room.store.reader() as reader:
        events = reader.events(0, MANY)
        ledger.verify(events, reader.anchor(), reader.head())
        assert ledger.fold(events) == reader.folded()
        for queue in reader.queues("default", None):
            counts = reader.counts(queue.id)
            tx_states = {state: getattr(counts, state) for state in counts.__struct_fields__}
            live = [s for s in walk.room.page(queue=queue.path) if not s.archived]
            assert tx_states == {state: sum(s.row.state == state for s in live) for state in tx_states}
    walk.room.close()
