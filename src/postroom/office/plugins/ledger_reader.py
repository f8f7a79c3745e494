"""A plugin's reader of the ledger: every event is told at least once, in order, also over restarts.

One process at a time reads for a plugin. An event whose handler fails is told again; when the plugin is
switched off for it, it is the first one after the next start.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from postroom.errors import StoreClosed, StoreFailed
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
        self.plugin = plugin
        self._translate = translate
        self._stopped = stopped
        self._pause_s = pause_s
        self._leader = room.leader(f"plugin/{plugin.name}", lease_s=LEASE_S)
        # A plugin that is new hears of what happens from now on.
        self._reader = room.ledger_reader(f"plugin/{plugin.name}", save_s=SAVE_S)

    def stop(self) -> None:
        self._leader.stop()

    async def run(self) -> None:
        await self._leader.run(self._tell_all, finish=self._keep_position)

    async def _keep_position(self) -> None:
        """A plugin that is off keeps nothing from being pruned."""
        await self._reader.save(hold=self.plugin.running)

    async def _tell_all(self) -> None:
        self.plugin.position = await self._reader.open()
        async with aclosing(self._reader.events()) as events:
            async for event in events:
                if not await self._tell(event):
                    return
                self.plugin.position = event.seq

    async def _names(self, event: Event) -> Sequence[PluginEvent]:
        """An event that cannot be translated is told as it is; what comes after it must not wait."""
        try:
            return await self._translate(event)
        except (StoreClosed, StoreFailed):
            raise
        except Exception:
            log.exception("event %d could not be translated for plugins", event.seq)
            return await as_it_is(event)

    async def _tell(self, event: Event) -> bool:
        """Whether all its handlers have taken the event, those that failed after another try."""
        if not self.plugin.running:
            return False
        for told in await self._names(event):
            for handler in self.plugin.handlers(told.type):
                pause = self._pause_s
                while True:
                    try:
                        await self.plugin.call(told.type, handler, told)
                        break
                    except CallFailed:
                        if not self.plugin.running:
                            if self._stopped is not None:
                                await self._stopped(self.plugin)
                            return False
                        await asyncio.sleep(pause)
                        pause = min(pause * 2, 5.0)
        return True
