"""A process that sends what is scheduled until it is killed. Its clock runs fast, so that much happens."""

import asyncio
import sys
import time

from tests.office.schedules.desk import DIRECTORY

import postroom
from postroom.errors import StoreInUse
from postroom.office.schedules import Scheduler


class FastClock:
    def __init__(self, begin: int, factor: int) -> None:
        self._begin = begin
        self._factor = factor

    def now(self) -> int:
        return self._begin + (time.time_ns() // 1000 - self._begin) * self._factor


async def main(url: str, begin: int, factor: int) -> None:
    clock = FastClock(begin, factor)
    while True:
        try:
            async with postroom.open(url, clock=clock, housekeeping=False, durability="relaxed") as room:
                print("owner", flush=True)
                await Scheduler(room, lambda: DIRECTORY, clock, overlap=True).run()
        except StoreInUse:
            await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
