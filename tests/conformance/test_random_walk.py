"""A long walk through everything a room can do, at random: the promises hold at every step, on every store.

The same walk on the store for tests must lead to the same room, event by event.
"""

import contextlib
import random
from typing import Any

import pytest
from tests.conformance.helpers import events, read
from tests.conformance.promises import check_promises
from tests.conftest import OpenRoom, StoreKind

import postroom
from postroom import Message, PostroomError, Room
from postroom.clock import ManualClock
from postroom.ids import SeededIds

STEPS = 150
QUEUES = {
    "fifo": {"max_retries": 2, "visibility_timeout_s": 20, "max_depth": 12, "overflow_policy": "drop_oldest"},
    "rank": {"ordering": "priority", "concurrency": 3, "max_depth": 9, "overflow_policy": "dead_letter"},
    "due": {"ordering": "deadline", "default_ttl_s": 60, "max_retries": 1},
    "news": {
        "consumer_mode": "broadcast",
        "max_retries": 2,
        "max_depth": 6,
        "overflow_policy": "drop_oldest",
    },
}
SUBSCRIBERS = ("ann", "bob", "cid")


class Walker:
    """Does one thing at a time, chosen by a seeded die; what was refused is part of the story."""

    def __init__(self, room: Room, clock: ManualClock, seed: int) -> None:
        self._room = room
        self._clock = clock
        self._die = random.Random(seed)
        self._held: list[Message] = []
        self._ids: list[str] = []
        self.story: list[str] = []

    async def start(self) -> None:
        for name, settings in QUEUES.items():
            await self._room.create_queue(name, **settings)
        await self._room.subscribe("news", "ann")

    async def step(self) -> None:
        name = self._die.choice(sorted(name for name in dir(self) if name.startswith("do_")))
        try:
            told = await getattr(self, name)()
        except PostroomError as error:
            told = type(error).__name__
        self.story.append(f"{name} {told}")

    def _any_id(self) -> str:
        return self._die.choice([*self._ids[-15:], "nobody"])

    def _any_claim(self) -> Message:
        return self._held.pop(self._die.randrange(len(self._held)))

    async def do_publish(self) -> Any:
        options: dict[str, Any] = {}
        if self._die.random() < 0.3:
            options["delay"] = self._die.randrange(1, 30)
        if self._die.random() < 0.3:
            options["ttl"] = self._die.randrange(1, 90)
        if self._die.random() < 0.3:
            options["key"] = f"key-{self._die.randrange(8)}"
        options["priority"] = self._die.choice(["low", "normal", "high"])
        bodies = range(self._die.randrange(1, 4)) if "key" not in options else [self._die.randrange(2)]
        receipts = await self._room.publish_many(self._die.choice(list(QUEUES)), bodies, **options)
        self._ids += [receipt.id for receipt in receipts]
        return receipts

    do_publish_more = do_publish_again = do_publish

    async def do_claim(self) -> Any:
        queue = self._die.choice(list(QUEUES))
        subscription = self._die.choice(SUBSCRIBERS) if queue == "news" else None
        limit = self._die.choice([1, 2, None])
        claimed = await self._room.claim(queue, limit=limit, subscription=subscription)
        self._held += claimed
        return [message.id for message in claimed]

    do_claim_more = do_claim

    async def do_settle(self) -> Any:
        if not self._held:
            return None
        claimed, room = self._any_claim(), self._room
        verbs: dict[str, Any] = {
            "complete": lambda: room.complete(claimed, "done"),
            "fail": lambda: room.fail(claimed, "no"),
            "reject": lambda: room.fail(claimed, "no", retry=False),
            "release": lambda: room.release(claimed),
            "snooze": lambda: room.snooze(claimed, self._die.randrange(20)),
        }
        name = self._die.choice(list(verbs))
        await verbs[name]()
        return name

    do_settle_more = do_settle_again = do_settle

    async def do_extend(self) -> Any:
        return await self._room.extend(self._die.choice(self._held), 40) if self._held else None

    async def do_cancel(self) -> Any:
        return await self._room.cancel(self._any_id())

    async def do_kill(self) -> Any:
        return await self._room.kill(self._any_id(), "guard")

    async def do_replay(self) -> Any:
        if self._die.random() < 0.5:
            return await self._room.replay(self._any_id())
        return await self._room.replay(scope="default", limit=3)

    async def do_discard(self) -> Any:
        return await self._room.discard(scope="default", limit=1)

    async def do_reprioritise(self) -> Any:
        return await self._room.reprioritise(self._any_id(), score=self._die.randrange(1001))

    async def do_subscribe(self) -> Any:
        name = self._die.choice(SUBSCRIBERS)
        return await self._room.subscribe("news", name, earliest=self._die.random() < 0.5)

    async def do_unsubscribe(self) -> Any:
        return await self._room.unsubscribe("news", self._die.choice(SUBSCRIBERS))

    async def do_change_queue(self) -> Any:
        queue = self._die.choice(list(QUEUES))
        if self._die.random() < 0.5:
            state = self._die.choice(["active", "active", "paused", "draining"])
            return (await self._room.set_queue_state(queue, state)).state
        ordering = self._die.choice(["fifo", "priority", "deadline"])
        return (await self._room.update_queue(queue, ordering=ordering)).settings.ordering

    async def do_unit(self) -> Any:
        async with self._room.unit() as unit:
            unit.publish("fifo", "in a unit")
            if self._held:
                unit.complete(self._die.choice(self._held))
            unit.record("turn", "walker", {})
            if self._die.random() < 0.3:
                unit.publish("nowhere", 1)
        return unit.results

    async def do_housekeep(self) -> Any:
        name = self._die.choice([status.name for status in await self._room.housekeepers()])
        return name, await self._room.housekeep(name)

    async def do_pass_time(self) -> Any:
        self._clock.advance(self._die.choice([1, 5, 20, 700, 4000]))

    do_pass_more_time = do_pass_time


async def walk(room: Room, clock: ManualClock, seed: int) -> list[str]:
    walker = Walker(room, clock, seed)
    await walker.start()
    for step in range(STEPS):
        await walker.step()
        if step % 10 == 9:
            try:
                check_promises(room)
            except BaseException as error:
                error.add_note("\n".join(["after:", *walker.story[-12:]]))
                raise
    return walker.story


@pytest.mark.parametrize("seed", range(4))
async def test_every_promise_holds_at_every_step_and_stores_agree(
    open_room: OpenRoom, store_kind: StoreKind, clock: ManualClock, seed: int
) -> None:
    store_kind.count_from_one()
    reference_clock = ManualClock()
    options: dict[str, Any] = {"clock": reference_clock, "seed": 1, "housekeeping": False, "actor": "tester"}
    async with contextlib.AsyncExitStack() as stack:
        room = await stack.enter_async_context(open_room())
        reference = await stack.enter_async_context(postroom.open("memory://", ids=SeededIds(), **options))
        story = await walk(room, clock, seed)
        assert story == await walk(reference, reference_clock, seed)
        assert events(room) == events(reference)
        assert read(room, lambda reader: reader.folded()) == read(reference, lambda reader: reader.folded())
        assert len({line.split()[0] for line in story}) > 15, "the walk came by almost everything"
