"""Postroom as a program uses it: checks, hash-chained ledger and housekeeping included."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import postroom
from benchmarks.databases.participant import BATCH
from benchmarks.queueing.letter import BODY, QUEUE, room_options


class PostroomQueue:
    def __init__(self, room: postroom.Room) -> None:
        self.room = room

    async def publish(self, count: int) -> None:
        for _ in range(count // BATCH):
            await self.room.publish_many(QUEUE, [BODY] * BATCH)

    async def publish_one(self) -> None:
        await self.room.publish(QUEUE, BODY)

    async def drain(self) -> int:
        """What is done is completed in the same turn as the next is claimed, so that both are one commit."""
        done = 0
        batch = await self.room.claim(QUEUE, limit=BATCH)
        while batch:
            completed = self.room.complete_many([(message, None) for message in batch])
            batch, outcomes = await asyncio.gather(self.room.claim(QUEUE, limit=BATCH), completed)
            done += outcomes.count(None)
        return done

    async def drain_alone(self, consumers: int) -> int:
        """With several consumers in this process."""
        return sum(await asyncio.gather(*(self.drain() for _ in range(consumers))))


@contextlib.asynccontextmanager
async def open_postroom(url: str) -> AsyncIterator[PostroomQueue]:
    address, _, redis = url.partition(" ")
    async with postroom.open(address, **room_options(redis=redis or None)) as room:
        await room.create_queue(QUEUE, exist_ok=True)
        yield PostroomQueue(room)
