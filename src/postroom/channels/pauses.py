"""Waiting that ends when the channel stops: nobody who waits for a platform holds up the end of a process."""

import asyncio
from collections.abc import Awaitable, Callable

Sleep = Callable[[float], Awaitable[None]]


class Stopping(Exception):
    """The channel stops; what waits is given back as it is."""


class Pauses:
    """`sleep` can be a test's own, on a clock that it holds."""

    def __init__(self, sleep: Sleep = asyncio.sleep) -> None:
        self._sleep = sleep
        self._stopped = asyncio.Event()

    @property
    def stopping(self) -> bool:
        return self._stopped.is_set()

    def stop(self) -> None:
        self._stopped.set()

    async def sleep(self, seconds: float) -> None:
        if self.stopping:
            raise Stopping
        pause = asyncio.ensure_future(self._sleep(seconds))
        end = asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait({pause, end}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            end.cancel()
        if self.stopping:
            raise Stopping
