"""A plugin's reader of the ledger: every event is told at least once, in order, also over restarts.

One process at a time reads for a plugin. An event whose handler fails is told again; when the plugin is
switched off for it, it is the first one after the next start.
"""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from postroom.errors import EventsPruned, PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.ledger import Event
from postroom.office.plugins.api import PluginEvent
from postroom.office.plugins.plugin import Plugin
from postroom.office.plugins.timed_calls import CallFailed
from postroom.office.ports import RoomPort

log = logging.getLogger("postroom.plugins")

LEASE_S = 15.0
SAVE_S = 1.0
PAUSE_S = 0.2

Translate = Callable[[Event], Awaitable[Sequence[PluginEvent]]]


async def as_it_is(event: Event) -> Sequence[PluginEvent]:
    """The event by its name in the ledger."""
    told = PluginEvent(
        type=event.type,
        timestamp=event.time // 1000,
        seq=event.seq,
        scope=event.scope,
        queue=event.queue,
        message_id=event.message_id,
        conversation=event.correlation_id,
        actor=event.actor,
        data=event.details,
    )
    return (told,)


def named(translate: Callable[[Event], Awaitable[Sequence[tuple[str, dict[str, Any]]]]]) -> Translate:
    """The event by its name in the ledger, and then by the names that clients know."""

    async def both(event: Event) -> Sequence[PluginEvent]:
        (plain,) = await as_it_is(event)
        others = await translate(event)
        return (plain, *(msgspec.structs.replace(plain, type=name, data=data) for name, data in others))

    return both


class PluginLedgerReader:
    def __init__(
        self,
        room: RoomPort,
        plugin: Plugin,
        *,
        translate: Translate = as_it_is,
        stopped: Callable[[Plugin], Awaitable[None]] | None = None,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._room = room
        self._plugin = plugin
        self._translate = translate
        self._stopped = stopped
        self._pause_s = pause_s
        self._stopping = asyncio.Event()
        self._name = f"plugin/{plugin.name}"
        self._holder = f"{room.actor}/{uuid.uuid4().hex[:8]}"
        self._saved: int | None = None
        self._telling = False

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        try:
            while self._plugin.running and not self._stopping.is_set():
                try:
                    if await self._lead(LEASE_S):
                        await self._follow()
                    else:
                        await self._sleep(LEASE_S / 3)
                except StoreClosed:
                    return
                except PostroomError as error:
                    log.error("plugin %s does not read the ledger: %s", self._plugin.name, error)
                    await self._sleep(SAVE_S)
                except Exception:
                    log.exception("the reader of plugin %s begins again", self._plugin.name)
                    await self._sleep(SAVE_S)
        finally:
            with contextlib.suppress(PostroomError):
                await self._save(hold=self._plugin.running)
                await self._lead(0)

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _lead(self, seconds: float) -> bool:
        lead = c.Lead(name=self._name, holder=self._holder, seconds=seconds, actor=self._holder)
        return await self._room.run(lead)

    async def _follow(self) -> None:
        self._plugin.position = await self._begin()
        self._telling = False
        following = asyncio.create_task(self._tell_all())
        keeping = asyncio.create_task(self._keep())
        try:
            await asyncio.wait({following, keeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            results = await asyncio.gather(*map(_ended, (following, keeping)))
        for result in results:
            if result is not None:
                raise result

    async def _begin(self) -> int:
        """Where it had come to; a plugin that is new hears of what happens from now on."""
        for position in await self._room.positions():
            if position.name == self._name:
                self._saved = None
                return position.seq
        seq = (await self._room.head()).seq
        self._plugin.position = seq
        await self._save(hold=True)
        return seq

    async def _keep(self) -> None:
        """Keeps the lead and saves the position now and then; ends when somebody else has the lead."""
        while True:
            await asyncio.sleep(SAVE_S)
            await self._save(hold=True)
            # In the middle of an event it ends by itself, after whoever must know was told that it is off.
            off = not self._plugin.running and not self._telling
            if off or not await self._lead(LEASE_S):
                return

    async def _save(self, *, hold: bool) -> None:
        at = self._plugin.position
        if at is None or (at == self._saved and hold):
            return
        await self._room.run(c.SetPosition(name=self._name, seq=at, hold=hold, actor=self._holder))
        self._saved = at

    async def _tell_all(self) -> None:
        while True:
            try:
                async with aclosing(self._room.events(self._plugin.position or 0, follow=True)) as events:
                    async for event in events:
                        self._telling = True
                        taken = await self._tell(event)
                        self._telling = False
                        if not taken:
                            return
                        self._plugin.position = event.seq
            except EventsPruned as error:
                log.warning("plugin %s missed events: %s", self._plugin.name, error)
                self._plugin.position = error.data["first"] - 1

    async def _names(self, event: Event) -> Sequence[PluginEvent]:
        """An event that cannot be translated is told as it is; what comes after it must not wait."""
        try:
            return await self._translate(event)
        except StoreClosed:
            raise
        except Exception:
            log.exception("event %d could not be translated for plugins", event.seq)
            return await as_it_is(event)

    async def _tell(self, event: Event) -> bool:
        """Whether all its handlers have taken the event, those that failed after another try."""
        if not self._plugin.running:
            return False
        for told in await self._names(event):
            for handler in self._plugin.handlers(told.type):
                pause = self._pause_s
                while True:
                    try:
                        await self._plugin.call(told.type, handler, told)
                        break
                    except CallFailed:
                        if not self._plugin.running:
                            if self._stopped is not None:
                                await self._stopped(self._plugin)
                            return False
                        await asyncio.sleep(pause)
                        pause = min(pause * 2, 5.0)
        return True


async def _ended(task: asyncio.Task[None]) -> Exception | None:
    """Cancels until it has ended: a cancellation can get lost where somebody waits with a time limit."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=1.0)
    return None if task.cancelled() else _failure(task.exception())


def _failure(error: BaseException | None) -> Exception | None:
    return error if isinstance(error, Exception) else None
