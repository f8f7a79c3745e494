"""A clock that stands until the test moves it, and on which coroutines can wait."""

import asyncio

from postroom.clock import SECOND, ManualClock


class HeldClock(ManualClock):
    """`advance` moves the time and wakes every coroutine whose moment has come; nothing else does."""

    def __init__(self, start: int = 1_800_000_000 * SECOND) -> None:
        super().__init__(start)
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._joined = asyncio.Event()

    async def wait_for_sleepers(self, count: int = 1) -> None:
        """Until this many coroutines wait for a later moment: then `advance` reaches them."""
        while len(self._waiting) < count:
            await self._joined.wait()

    async def wait_until(self, moment: int) -> None:
        if moment <= self.now():
            return
        future = asyncio.get_running_loop().create_future()
        entry = (moment, future)
        self._waiting.append(entry)
        self._joined.set()
        self._joined = asyncio.Event()
        try:
            await future
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)

    async def sleep(self, seconds: float) -> None:
        await self.wait_until(self.now() + round(seconds * SECOND))

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        self._wake()

    def set(self, now: int) -> None:
        super().set(now)
        self._wake()

    def _wake(self) -> None:
        due = [entry for entry in self._waiting if entry[0] <= self.now()]
        self._waiting = [entry for entry in self._waiting if entry[0] > self.now()]
        for _, future in due:
            # A test may move the clock from another thread than the loop's.
            future.get_loop().call_soon_threadsafe(_finish, future)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
