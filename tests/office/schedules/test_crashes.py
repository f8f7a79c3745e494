"""Two processes share the schedules, and are killed at any moment: every time is still dealt with once."""

import asyncio
import random
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest
from tests.office.schedules.child import FastClock
from tests.office.schedules.desk import a_book, furnish, mail, slots

import postroom
from postroom.clock import ManualClock

ROOT = Path(__file__).parents[3]
FACTOR = 10
KILLS = 3


async def start(url: str, begin: int) -> asyncio.subprocess.Process:
    arguments = ("-m", "tests.office.schedules.child", url, str(begin), str(FACTOR))
    return await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )


async def owner(processes: list[asyncio.subprocess.Process]) -> asyncio.subprocess.Process:
    """The process that has the store, once one has it."""
    reading = {}
    for process in processes:
        assert process.stdout is not None
        reading[asyncio.ensure_future(process.stdout.readline())] = process
    done, late = await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    return reading[done.pop()]


@pytest.mark.slow
async def test_no_time_is_lost_or_doubled_when_processes_are_killed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'room.db'}"
    begin = time.time_ns() // 1000
    fast = FastClock(begin, FACTOR)
    async with postroom.open(url, clock=fast, housekeeping=False) as room:
        await furnish(room)
        await a_book(room, ManualClock(fast.now())).add("coder", "x", cron="* * * * * *", missed="all")
    rng = random.Random(7)
    processes = [await start(url, begin) for _ in range(2)]
    try:
        async with asyncio.timeout(240):
            for _ in range(KILLS):
                first = await owner(processes)
                await asyncio.sleep(rng.uniform(0.1, 4))
                first.kill()
                await first.wait()
                processes.remove(first)
                processes.append(await start(url, begin))
            await owner(processes)
            await asyncio.sleep(4)
    finally:
        for process in processes:
            process.kill()
        await asyncio.gather(*(process.wait() for process in processes))
    async with postroom.open(url, housekeeping=False) as room:
        sent = slots(await mail(room))
    assert len(sent) > 20
    assert sent == sorted(set(sent)), "each once, and in order"
    seconds = [round(datetime.fromisoformat(slot).timestamp()) for slot in sent]
    assert seconds == list(range(seconds[0], seconds[-1] + 1)), "and none is left out"
