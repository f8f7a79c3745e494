"""How soon a consumer that waits has what another process of the room has just published, and how soon that
is so again when Redis was away."""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from tests.redis_server import RedisServer

import postroom
from benchmarks.queueing import measure
from benchmarks.queueing.letter import BODY, QUEUE, room_options
from benchmarks.queueing.measure import Figure, Outcome, Ratio

MOST_MS = 50.0
IDLE_S = (0.02, 0.06)
MOST_BACK_S = 10.0
AWAY_S = 3.0
# So many in a row, each as quick as with Redis.
QUICK_WAKES, QUICK_MS = 5, 8.0


@contextlib.asynccontextmanager
async def _waiting(url: str, redis: str | None) -> AsyncIterator[Callable[[], Awaitable[float]]]:
    """Gives the milliseconds from the return of a publish until the consumer has the message. The two rooms
    share nothing but the server, as two processes do."""
    rng = random.Random(0)
    arrived: asyncio.Queue[float] = asyncio.Queue()
    options = room_options(redis=redis)

    async def consume(room: postroom.Room) -> None:
        while True:
            for job in await room.claim(QUEUE, wait=30):
                arrived.put_nowait(time.perf_counter())
                await room.complete(job)

    async with postroom.open(url, **options) as sender, postroom.open(url, **options) as receiver:
        await sender.create_queue(QUEUE)
        consumer = asyncio.create_task(consume(receiver))

        async def wake() -> float:
            await asyncio.sleep(rng.uniform(*IDLE_S))
            await sender.publish(QUEUE, BODY)
            published = time.perf_counter()
            return max(0.0, (await arrived.get() - published) * 1000)

        try:
            await wake()
            yield wake
        finally:
            consumer.cancel()
            await asyncio.gather(consumer, return_exceptions=True)


async def _measure(url: str, redis: str | None, wakes: int) -> list[float]:
    async with _waiting(url, redis) as wake:
        return [await wake() for _ in range(wakes)]


async def _measure_return(url: str, redis: RedisServer) -> tuple[float, float]:
    """The median wake-up while Redis is away, in milliseconds, and the seconds from its return until wake-ups
    are as quick as before."""
    async with _waiting(url, redis.url) as wake:
        await asyncio.to_thread(redis.stop)
        gone, without = time.monotonic(), []
        while time.monotonic() - gone < AWAY_S:
            without.append(await wake())
        await asyncio.to_thread(redis.start)
        back, quick = time.monotonic(), 0
        while quick < QUICK_WAKES and time.monotonic() - back < 2 * MOST_BACK_S:
            quick = quick + 1 if await wake() <= QUICK_MS else 0
        return sorted(without)[len(without) // 2], time.monotonic() - back


def come_back(name: str, url: str, redis: RedisServer) -> Outcome:
    case = f"{name}: Redis was stopped for {AWAY_S:.0f} seconds"
    away, back = asyncio.run(_measure_return(url, redis))
    what = "seconds until wake-ups are quick again"
    return Outcome(
        [measure.figure(case, "p50 of wake-ups meanwhile", "ms", [away])],
        [Ratio(case=case, what=what, value=back, target=MOST_BACK_S, better="lower", unit=" s")],
    )


def wake_up(name: str, url: str, redis: str | None, wakes: int) -> Outcome:
    case = f"{name}: wake-up of a consumer in another process"
    times = sorted(asyncio.run(_measure(url, redis, wakes)))
    p50, p99 = times[len(times) // 2], times[min(len(times) - 1, int(len(times) * 0.99))]
    figures: list[Figure] = [
        measure.Figure(case=case, who="p50 from the return of publish", unit="ms", value=p50, rounds=times),
        measure.Figure(case=case, who="p99 from the return of publish", unit="ms", value=p99, rounds=times),
    ]
    what = "p99 from the return of publish"
    return Outcome(
        figures, [Ratio(case=case, what=what, value=p99, target=MOST_MS, better="lower", unit=" ms")]
    )
