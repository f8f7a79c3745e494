"""How soon a consumer that waits has what another process of the room has just published."""

import asyncio
import random
import time

import postroom
from benchmarks.queueing import measure
from benchmarks.queueing.letter import BODY, QUEUE, room_options
from benchmarks.queueing.measure import Figure, Outcome, Ratio

MOST_MS = 50.0
IDLE_S = (0.02, 0.06)


async def _measure(url: str, redis: str | None, wakes: int) -> list[float]:
    """Milliseconds from the return of each publish until the consumer has the message. The two rooms share
    nothing but the server, as two processes do."""
    rng, times = random.Random(0), []
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
        for number in range(wakes + 1):
            await asyncio.sleep(rng.uniform(*IDLE_S))
            await sender.publish(QUEUE, BODY)
            published = time.perf_counter()
            spent = (await arrived.get() - published) * 1000
            if number:
                times.append(max(0.0, spent))
        consumer.cancel()
        await asyncio.gather(consumer, return_exceptions=True)
    return times


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
