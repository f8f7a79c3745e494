"""A screen that looks again whenever the server tells that something happened, and now and then besides.

A server that stops and starts again is heard again; until then the screen says what is wrong.
"""

import asyncio
import contextlib
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
from textual import work
from textual.app import App
from textual.css.query import NoMatches
from textual.screen import ModalScreen

from postroom.errors import PostroomError

LOOK_S = 2.0
AGAIN_S = 3.0
# However many events come, the screen is drawn anew no more often than this.
CALM_S = 0.25

LiveEvent = tuple[str, dict[str, Any], str | None]
"""Its name, what it says, and the number to go on from."""
Events = Callable[[str | None], AsyncIterator[LiveEvent]]
"""What happens after the event of this number, and from now on without one."""


class LiveScreen(App[None]):
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events
        self.last_heard: str | None = None
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

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is open above it, its own keys are silent: Escape leads back from there."""
        return action == "quit" or not isinstance(self.screen, ModalScreen)

    def hear(self, event: LiveEvent) -> None:
        """For screens that show what events say; others only look again."""

    @work(exclusive=True, group="look")
    async def _keep_looking(self) -> None:
        while True:
            self.news.clear()
            try:
                await self.look()
            except PostroomError as error:
                self.tell_problem(str(error))
            except NoMatches:
                if self.is_running:
                    raise
                return  # it was closed meanwhile, and parts of it are gone
            await asyncio.sleep(CALM_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self.news.wait()

    @work(exclusive=True, group="hear")
    async def _keep_hearing(self) -> None:
        while True:
            with contextlib.suppress(PostroomError, OSError, httpx2.HTTPError):
                async for event in self._events(self.last_heard):
                    self.last_heard = event[2] or self.last_heard
                    self.hear(event)
                    self.news.set()
            await asyncio.sleep(AGAIN_S)
