"""A screen that looks again whenever the server tells that something happened, and now and then besides.

A server that stops and starts again is heard again; until then the screen says what is wrong.
"""

import asyncio
import contextlib
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable

from textual import work
from textual.app import App

from postroom.errors import PostroomError

LOOK_S = 2.0
AGAIN_S = 3.0
# However many events come, the screen is drawn anew no more often than this.
CALM_S = 0.25

Events = Callable[[], AsyncIterator[object]]


class LiveScreen(App[None]):
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events
        self.news = asyncio.Event()
        """Set by whoever wants the screen to look at once."""

    def begin_looking(self) -> None:
        self._keep_looking()
        self._keep_hearing()

    @abstractmethod
    async def look(self) -> None:
        """Asks the server, and draws what it answers."""

    @abstractmethod
    def tell_problem(self, problem: str) -> None: ...

    @work(exclusive=True, group="look")
    async def _keep_looking(self) -> None:
        while True:
            self.news.clear()
            try:
                await self.look()
            except PostroomError as error:
                self.tell_problem(str(error))
            await asyncio.sleep(CALM_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self.news.wait()

    @work(exclusive=True, group="hear")
    async def _keep_hearing(self) -> None:
        while True:
            with contextlib.suppress(PostroomError, OSError):
                async for _ in self._events():
                    self.news.set()
            await asyncio.sleep(AGAIN_S)
