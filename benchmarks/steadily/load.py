"""Those who work while it is measured: one process publishes at a steady rate, others claim and complete."""

import asyncio
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event as Flag
from typing import Any

import msgspec

import postroom
from benchmarks.queueing.letter import BODY, QUEUE, room_options

BEATS_PER_S = 20
BATCH = 20
TELL_S = 1.0


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What one process has done within about a second."""

    at: float
    published: int = 0
    completed: int = 0
    claims_ms: list[float] = []
    """How long each claim took that found something."""
    waits_ms: list[float] = []
    """How long each message had waited when it was claimed."""


async def _publish(url: str, told: Any, ended: Flag, rate: int) -> None:
    async with postroom.open(url, **room_options()) as room:
        await room.create_queue(QUEUE, exist_ok=True)
        start, beats, sent, since = time.monotonic(), 0, 0, time.monotonic()
        while not ended.is_set():
            beats += 1
            size = rate * beats // BEATS_PER_S - rate * (beats - 1) // BEATS_PER_S
            await room.publish_many(QUEUE, [BODY] * size)
            sent += size
            if time.monotonic() - since >= TELL_S:
                told.put(Work(at=time.time(), published=sent))
                sent, since = 0, time.monotonic()
            await asyncio.sleep(max(0.0, start + beats / BEATS_PER_S - time.monotonic()))
        told.put(Work(at=time.time(), published=sent))


async def _consume(url: str, told: Any, ended: Flag) -> None:
    """Until the end was told and nothing is left."""
    async with postroom.open(url, **room_options()) as room:
        await room.create_queue(QUEUE, exist_ok=True)
        claims: list[float] = []
        waits: list[float] = []
        completed, since = 0, time.monotonic()
        while True:
            asked = time.perf_counter()
            batch = await room.claim(QUEUE, limit=BATCH)
            if batch:
                claims.append((time.perf_counter() - asked) * 1000)
                now = time.time()
                waits += [max(0.0, now - message.created_at / 1e6) * 1000 for message in batch]
                outcomes = await room.complete_many([(message, None) for message in batch])
                completed += outcomes.count(None)
            if time.monotonic() - since >= TELL_S or (not batch and ended.is_set()):
                told.put(Work(at=time.time(), completed=completed, claims_ms=claims, waits_ms=waits))
                claims, waits, completed, since = [], [], 0, time.monotonic()
            if not batch:
                if ended.is_set():
                    return
                await asyncio.sleep(1 / BEATS_PER_S)


def _run(work: Callable[..., Any], *arguments: Any) -> None:
    asyncio.run(work(*arguments))


class Load:
    """One publisher and some consumers, each a process of its own."""

    def __init__(self, url: str, rate: int, consumers: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.told: Any = context.Queue()
        self._enough, self._published = context.Event(), context.Event()
        self._publisher = context.Process(target=_run, args=(_publish, url, self.told, self._enough, rate))
        self._consumers = [
            context.Process(target=_run, args=(_consume, url, self.told, self._published))
            for _ in range(consumers)
        ]
        for process in (self._publisher, *self._consumers):
            process.start()

    def take(self) -> list[Work]:
        """What was told since the last time."""
        found: list[Work] = []
        while not self.told.empty():
            found.append(self.told.get())
        return found

    def check(self) -> None:
        for process in (self._publisher, *self._consumers):
            if process.exitcode:
                raise SystemExit(f"a process of the load ended with {process.exitcode}")

    def finish(self) -> list[Work]:
        """Publish no more, complete what is there, and end."""
        found: list[Work] = []
        self._enough.set()
        for process in (self._publisher, *self._consumers):
            while process.is_alive():
                process.join(0.2)
                found += self.take()
            self._published.set()
            self.check()
        return found + self.take()
