"""The process that gets killed: `python -m tests.faults.child STORE SEED NAME [REDIS]` works until it dies.

Each operation is told to the parent before the call and again when it has returned, a line of JSON each.
"""

import asyncio
import os
import random
import sys
from typing import Any

import postroom
from postroom.clock import SystemClock, micros
from postroom.errors import StoreFailed
from postroom.kernel import commands as c
from postroom.kernel import jsontext
from postroom.kernel.housekeeping.housekeepers import ARCHIVER, VISIBILITY, Retention
from postroom.kernel.model import NewMessage
from tests.faults.history import History

NEWS = "default/news"
QUEUES: dict[str, dict[str, Any]] = {
    "default/jobs": {"max_retries": 3, "visibility_timeout_s": 0.2, "backoff_base_s": 0.01},
    "default/urgent": {"ordering": "priority", "max_retries": 2, "visibility_timeout_s": 0.5},
    "default/tight": {"max_depth": 20, "overflow_policy": "drop_oldest"},
    NEWS: {"consumer_mode": "broadcast", "max_retries": 2, "visibility_timeout_s": 0.3},
}
KEYS = 300


def tell(line: dict[str, Any]) -> None:
    # One write per line, so that a kill leaves whole lines.
    os.write(1, jsontext.encode(line) + b"\n")


class _Told(list[dict[str, Any]]):
    def append(self, line: dict[str, Any]) -> None:
        tell(line)


class Child:
    def __init__(self, room: postroom.Room, seed: int, name: str) -> None:
        self._room = room
        self._rng = random.Random(f"{seed} {name}")
        self._name = name
        self._count = 0
        self._history = History(_Told())
        self._clock = SystemClock()
        self._ids: list[str] = []

    async def ask(self, command: c.Command) -> Any:
        """As a caller of the room; every fourth time as a thread would."""
        self._count += 1
        name, now = f"{self._name}-{self._count}", self._count % 4
        self._history.begin(name, command)
        try:
            if now:
                value = await self._room.run(command)
            else:
                value = await asyncio.to_thread(self._room._core.committer.execute, command)
        except Exception as error:
            self._history.not_ok(name, error)
            return None
        self._history.ok(name, command, value)
        return value

    async def furnish(self) -> None:
        for queue, settings in QUEUES.items():
            await self.ask(c.CreateQueue(queue=queue, settings=settings, exist_ok=True))
        for name in ("anna", "ben"):
            await self.ask(c.Subscribe(queue=NEWS, name=name, exist_ok=True))

    def _messages(self, count: int = 1) -> list[NewMessage]:
        self._count += 1
        marks = [f"{self._name}-{self._count}-{index}" for index in range(count)]
        return [
            NewMessage(
                body={"mark": mark, "pad": "x" * self._rng.choice((0, 50, 3000))},
                priority_score=self._rng.randrange(1000),
                ttl_s=self._rng.choice((None, None, None, 0.3)),
                delay_until=self._rng.choice((None, None, self._clock.now() + micros(0.05))),
            )
            for mark in marks
        ]

    async def publisher(self) -> None:
        while True:
            queue = self._rng.choice([*QUEUES])
            messages = self._messages(self._rng.choice((1, 1, 4)))
            command: c.Command = c.Publish(queue=queue, messages=messages)
            if self._rng.random() < 0.3:
                bodies = [message.body for message in messages]
                command = c.PublishLike(queue=queue, bodies=bodies, like=NewMessage())
            receipts = await self.ask(command)
            self._ids = [*self._ids[-50:], *(receipt.id for receipt in receipts or ())]

    async def keyed_publisher(self) -> None:
        """The same keys again and again, also after a crash: as a client that never saw its answer."""
        while True:
            key = f"key-{self._rng.randrange(KEYS)}"
            message = NewMessage(body={"mark": key}, idempotency_key=key)
            await self.ask(c.Publish(queue="default/jobs", messages=[message]))
            await asyncio.sleep(self._rng.random() * 0.003)

    async def worker(self, queues: tuple[str, ...], subscription: str | None = None) -> None:
        while True:
            limit = self._rng.choice((1, 1, 3))
            taken = await self.ask(c.Claim(queues=queues, limit=limit, subscription=subscription))
            if not taken or not taken.messages:
                await asyncio.sleep(0.002)
            for stored in taken.messages if taken else ():
                await self._settle({"message_id": stored.row.id, "token": stored.row.token or ""})

    async def _settle(self, held: dict[str, Any]) -> None:
        rng, self._count = self._rng, self._count + 1
        choice = rng.random()
        if choice < 0.35:
            await self.ask(c.Complete(**held))
        elif choice < 0.6:
            record = c.AddRecord(kind="turn", key=f"{self._name}-{self._count}", data={})
            reply = c.Publish(queue=rng.choice([*QUEUES]), messages=self._messages(2))
            await self.ask(c.Unit(commands=(c.Complete(**held), reply, record)))
        elif choice < 0.75:
            await self.ask(c.Fail(reason="no luck", retry=rng.random() < 0.7, **held))
        elif choice < 0.82:
            await self.ask(c.Release(**held))
        elif choice < 0.88:
            await self.ask(c.Snooze(until=self._clock.now() + micros(0.02), **held))
        elif choice < 0.95:
            await self.ask(c.Extend(lease_s=1.0, **held))
            await self.ask(c.Complete(**held))
        # else the worker forgets it, and the lease runs out

    async def operator(self) -> None:
        rng = self._rng
        while True:
            await asyncio.sleep(rng.random() * 0.01)
            someone = rng.choice(self._ids) if self._ids else "nobody"
            await self.ask(
                rng.choice(
                    (
                        c.Cancel(message_id=someone),
                        c.Kill(message_id=someone, reason="a guard said so"),
                        c.Replay(scope="default", limit=3),
                        c.Discard(scope="default", limit=2),
                        c.Housekeep(name=ARCHIVER, limit=20),
                        c.Housekeep(name=VISIBILITY, limit=20),
                    )
                )
            )


async def main(store: str, seed: int, name: str, redis: str | None = None) -> None:
    tell({"opening": name})
    retention = Retention(archive_after_s=0.1, dead_after_s=0.5)
    opened = False
    while not opened:
        try:
            async with postroom.open(store, retention=retention, seed=seed, actor=name, redis=redis) as room:
                opened = True
                await live(room, seed, name)
        except StoreFailed:
            # A server may be away; a file may not.
            if opened or "://" not in store:
                raise
            await asyncio.sleep(0.1)


async def live(room: postroom.Room, seed: int, name: str) -> None:
    tell({"open": name})
    child = Child(room, seed, name)
    await child.furnish()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(3):
            tasks.create_task(child.publisher())
            tasks.create_task(child.keyed_publisher())
            tasks.create_task(child.worker(("default/jobs", "default/tight")))
        tasks.create_task(child.worker(("default/urgent",)))
        tasks.create_task(child.worker((NEWS,), "anna"))
        tasks.create_task(child.worker((NEWS,), "ben"))
        tasks.create_task(child.operator())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
