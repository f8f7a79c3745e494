"""The office in the process of a single command, when no server runs: settings are read at once, and the
room is opened only when something asks for it.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from postroom.app import first_run
from postroom.app.home import Home
from postroom.clock import Clock, SystemClock
from postroom.services.office_context import ChannelControl, NoChannels, OfficeControl, ServerFacts

if TYPE_CHECKING:
    from postroom.runtime import Room, SyncRoom
    from postroom.runtime.core import RoomCore
    from postroom.services.office_context import ProcessFacts
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
        self.home: Path = home.path
        self.clock: Clock = SystemClock()
        self.channels: ChannelControl = NoChannels()
        self.server = ServerFacts(started_at=self.clock.now(), processes=self._list_processes, host=home.host)
        self._place = home
        self._works = works
        self._actor = actor
        self._environment = environment
        self._core: RoomCore | None = None
        self._opening_core = threading.Lock()
        self._open_room: Room | None = None
        self._open_control: OfficeControl | None = None
        self._opening = asyncio.Lock()
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()
        if self._open_room is not None:
            await self._open_room.close()
        elif self._core is not None:
            await asyncio.to_thread(self._core.close)

    @property
    def file(self) -> "SettingsFile":
        return self._file

    @cached_property
    def _file(self) -> "SettingsFile":
        """On a database server the settings are in the store, which is opened when they are asked for."""
        if not self._may_be_on_server():
            return self._place.settings
        from postroom.app.store import is_server, load_host, store_url

        host = load_host(self._place, self._environment)
        if not is_server(store_url(self._place, host, self._environment)):
            return self._place.settings
        from postroom.app.office_settings import share_settings

        return share_settings(self._place, lambda: self._in_thread, self._environment)

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

    def _list_processes(self) -> "list[ProcessFacts]":
        """Of other hosts: here there is none, or it would have been asked."""
        from postroom.app.process_signs import list_processes

        is_shared = self._opened_core().writers > 1
        return list_processes(self._in_thread, self.clock) if is_shared else []

    def _may_be_on_server(self) -> bool:
        """Most offices are not, and looking closer takes longer than many commands."""
        if self._environment.get("POSTROOM_STORE"):
            return True
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return '"store"' in self._place.settings.path.read_text("utf-8")
        return False

    @cached_property
    def _in_thread(self) -> "SyncRoom":
        from postroom.runtime import SyncRoom

        return SyncRoom(self._opened_core())

    def _opened_core(self) -> "RoomCore":
        """Blocks. A room on it closes it; without one, whoever leaves the office does."""
        with self._opening_core:
            if self._core is None:
                from postroom.app.store import load_host, open_core

                settings = load_host(self._place, self._environment)
                self._core = open_core(
                    self._place, settings, self._environment, actor=self._actor, housekeeping=False
                )
            return self._core

    async def _opened_room(self) -> "Room":
        if self._open_room is None:
            from postroom.runtime import Room

            self._open_room = Room(await asyncio.to_thread(self._opened_core))
        return self._open_room

    async def _opened_control(self) -> OfficeControl:
        from postroom.app.office_reloader import OfficeReloader

        room = await self._opened_room()
        host = ""
        if room.is_shared:
            from postroom.app.host_name import name_host

            host = await asyncio.to_thread(name_host, self._place, self._in_thread)
        control = OfficeReloader(
            room,
            self.file,
            self.home,
            self.clock,
            works=self._works,
            environment=self._environment,
            host=host,
        )
        await control.open()
        self._stack.push_async_callback(control.close, GRACE_S)
        return control
