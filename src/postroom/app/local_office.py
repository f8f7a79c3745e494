"""The office in the process of a single command, when no server runs: settings are read at once, and the
room is opened only when something asks for it.
"""

import asyncio
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from postroom.app import first_run
from postroom.app.home import Home
from postroom.clock import Clock, SystemClock
from postroom.services.office_context import ChannelControl, NoChannels, OfficeControl, ServerFacts

if TYPE_CHECKING:
    from postroom.runtime import Room
    from postroom.settings.file import SettingsFile

GRACE_S = 20.0


class LocalOffice:
    """`async with` it. With `works`, agents work in this process while it lasts."""

    def __init__(
        self,
        home: Home,
        *,
        works: bool = False,
        actor: str = "",
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        first_run.prepare(home)
        self.file: SettingsFile = home.settings
        self.home: Path = home.path
        self.clock: Clock = SystemClock()
        self.channels: ChannelControl = NoChannels()
        self.server = ServerFacts(started_at=self.clock.now())
        self._place = home
        self._works = works
        self._actor = actor
        self._environment = environment
        self._open_room: Room | None = None
        self._open_control: OfficeControl | None = None
        self._opening = asyncio.Lock()
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def room(self) -> "Room":
        async with self._opening:
            return await self._opened_room()

    async def control(self) -> OfficeControl:
        async with self._opening:
            if self._open_control is None:
                self._open_control = await self._opened_control()
            return self._open_control

    async def apply(self) -> None:
        """Whoever opens the office later reads the settings then."""
        if self._open_control is not None:
            await self._open_control.apply()

    async def _opened_room(self) -> "Room":
        if self._open_room is None:
            from postroom.app.store import open_store
            from postroom.settings import with_environment

            settings = with_environment(self.file.load(), self._environment)
            opening = open_store(
                self._place, settings, self._environment, actor=self._actor, housekeeping=False
            )
            self._open_room = await self._stack.enter_async_context(opening)
        return self._open_room

    async def _opened_control(self) -> OfficeControl:
        from postroom.app.office_reloader import OfficeReloader

        room = await self._opened_room()
        control = OfficeReloader(
            room, self.file, self.home, self.clock, works=self._works, environment=self._environment
        )
        await control.open()
        self._stack.push_async_callback(control.close, GRACE_S)
        return control
