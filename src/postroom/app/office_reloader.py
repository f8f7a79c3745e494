"""The office at work by the newest settings: when they change, a new office takes over from the old one.

The lanes of both may run for a moment; the lease of a lane keeps each agent to one turn at a time.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from postroom.clock import Clock
from postroom.errors import PostroomError
from postroom.office.agents.room_changes import settle, sweep
from postroom.office.events import translator
from postroom.office.object_files import open_files
from postroom.office.office import Office
from postroom.office.plugins import PluginRegistry, named
from postroom.runtime import Room
from postroom.services.provider_registry import registry_for
from postroom.settings import Settings, SettingsFile, with_environment
from postroom.settings.errors import TokenDiffers

log = logging.getLogger("postroom.app")

LOOK_S = 2.0
PAUSE_S = 0.25


class OfficeReloader:
    def __init__(
        self,
        room: Room,
        file: SettingsFile,
        home: Path,
        clock: Clock,
        *,
        works: bool = True,
        environment: Mapping[str, str] = os.environ,
        tools: Callable[[str, str], Path | None] | None = None,
        changed: Callable[[Settings], None] = lambda settings: None,
        token_changed: Callable[[], None] = lambda: None,
        host: str = "",
    ) -> None:
        """`changed` hears of new settings before anybody works by them; `token_changed`, that the owner has
        another token than this process. `host` is the name of this one, where there may be others."""
        self._room = room
        self._file = file
        self._home = home
        self._clock = clock
        self._works = works
        self._environment = environment
        self._tools = tools
        self._changed = changed
        self._token_changed = token_changed
        self._host = host
        self._settings = self._read()
        self._plugins = PluginRegistry()
        self._office = self._made(self._settings)
        self._leaving: dict[Office, asyncio.Task[None]] = {}
        self._changing = asyncio.Lock()
        # What was wrong with the settings when they were last looked at, which is told once.
        self._problem = ""

    @property
    def office(self) -> Office:
        return self._office

    @property
    def plugins(self) -> PluginRegistry:
        return self._plugins

    @property
    def settings(self) -> Settings:
        return self._settings

    def _read(self) -> Settings:
        return with_environment(self._file.load(), self._environment)

    def _made(self, settings: Settings) -> Office:
        registry = registry_for(settings, self._home, self._clock, self._environment)
        return Office(
            self._room,
            settings,
            registry,
            folder=self._home,
            clock=self._clock,
            plugins=self._plugins,
            tools=self._tools,
            host="" if settings.workspace.shared else self._host,
            files=open_files(settings, self._home),
        )

    async def open(self) -> None:
        await self._plugins.load(self._settings.plugins, self._home, room=self._room)
        await self._office.furnish()
        if self._works:
            if self._host:
                await self._office.claim_workspaces()
            self._office.start()
            await sweep(self._room, self._office.directory)
            names = translator(self._room, lambda: self._office.directory)
            await self._plugins.start(self._room, named(names))

    async def apply(self) -> None:
        """Also called when nothing changed; then nothing happens. The old office stays until the new one is
        furnished: what cannot be done is tried again."""
        async with self._changing:
            settings = await asyncio.to_thread(self._read)
            if settings == self._settings:
                return
            self._changed(settings)
            made = self._made(settings)
            await made.furnish()
            before, old = self._office, self._settings
            self._office, self._settings = made, settings
            if self._works:
                made.start()
                earlier = tuple(self._leaving.values())
                self._leaving[before] = asyncio.create_task(self._leave(before, old, earlier))

    async def _leave(self, office: Office, old: Settings, earlier: tuple["asyncio.Task[None]", ...]) -> None:
        """Turns in hand may finish, also those of offices before; then nothing waits any more for agents that
        are gone."""
        try:
            await office.stop(grace=max(old.guards.turn_timeout_s, self._settings.guards.turn_timeout_s))
            await asyncio.gather(*earlier, return_exceptions=True)
            # Never while the next office is furnished: who has just come back would be shown out again.
            async with self._changing:
                await settle(self._room, old, self._settings)
        finally:
            self._leaving.pop(office, None)

    async def watch(self) -> None:
        """Somebody may edit the file by hand. In a store that others have too, any of them may change the
        settings; that is heard at once."""
        if not self._room.is_shared:
            while True:
                await asyncio.sleep(LOOK_S)
                await self._follow()
        async with self._room.woken() as news:
            while True:
                # Where much happens, not after each event.
                await asyncio.sleep(PAUSE_S)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await news.wait()
                news.clear()
                await self._follow()

    async def _follow(self) -> None:
        try:
            await self.apply()
        except PostroomError as error:
            if str(error) != self._problem:
                log.warning("the settings are not used: %s", error)
            self._problem = str(error)
            if isinstance(error, TokenDiffers):
                log.error("the owner has another token now; this process begins anew with the one it finds")
                self._token_changed()
        except Exception:
            log.exception("the settings are not used")
        else:
            self._problem = ""

    async def close(self, grace: float) -> None:
        leaving = dict(self._leaving)
        if leaving:
            await asyncio.wait(leaving.values(), timeout=grace)
        for task in leaving.values():
            task.cancel()
        await asyncio.gather(*leaving.values(), return_exceptions=True)
        offices = [*leaving, self._office] if self._works else []
        await asyncio.gather(*(office.stop(grace=0 if office in leaving else grace) for office in offices))
        await self._plugins.close()
