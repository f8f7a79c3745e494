"""The case about idleness: how soon a consumer that waits has what was just published in the same process."""

import asyncio
import random
import time
from pathlib import Path

import postroom
from benchmarks.queueing import measure
from benchmarks.queueing.letter import BODY, QUEUE, room_options, room_url
from benchmarks.queueing.measure import Effort, Outcome, Ratio
from benchmarks.queueing.pattern import Pattern

MOST_MS = 5.0
IDLE_S = (0.004, 0.012)


def wake_up(effort: Effort, pattern: Pattern, folder: Path) -> Outcome:
    case = "wake-up of an idle consumer"
    started, returned = asyncio.run(_measured(folder, effort.wakes))
    figures, ratios = [], []
    for since, times in (("start of publish", started), ("return of publish", returned)):
        half, most = _percentile(times, 0.50), _percentile(times, 0.99)
        figures += [
            measure.Figure(case=case, who=f"p50 from the {since}", unit="ms", value=half, rounds=times),
            measure.Figure(case=case, who=f"p99 from the {since}", unit="ms", value=most, rounds=times),
        ]
    ratios.append(
        Ratio(
            case=case,
            what="p99 from the start of publish",
            value=_percentile(started, 0.99),
            target=MOST_MS,
            better="lower",
            unit=" ms",
        )
    )
    return Outcome(figures, ratios)


def _percentile(times: list[float], part: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]


async def _measured(folder: Path, wakes: int) -> tuple[list[float], list[float]]:
    """Milliseconds from the start and from the return of each publish until the consumer has the message."""
    started: list[float] = []
    returned: list[float] = []
    rng = random.Random(0)
    async with postroom.open(room_url(folder), **room_options()) as room:
        await room.create_queue(QUEUE)
        arrived: asyncio.Queue[float] = asyncio.Queue()

        async def consume() -> None:
            while True:
                for job in await room.claim(QUEUE, wait=30):
                    arrived.put_nowait(time.perf_counter())
                    await room.complete(job)

        consumer = asyncio.create_task(consume())
        for _ in range(wakes):
            await asyncio.sleep(rng.uniform(*IDLE_S))
            before = time.perf_counter()
            await room.publish(QUEUE, BODY)
            after = time.perf_counter()
            at = await arrived.get()
            started.append((at - before) * 1000)
            returned.append(max(0.0, at - after) * 1000)
        consumer.cancel()
        await asyncio.gather(consumer, return_exceptions=True)
    return started, returned
