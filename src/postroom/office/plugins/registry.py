"""All plugins of an office. Mail passes their hooks one after the other, and passes on whatever they do."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from postroom.errors import PostroomError
from postroom.kernel import commands as c
from postroom.office.plugins.api import HookContext, Transformed
from postroom.office.plugins.discovery import Candidate, candidates
from postroom.office.plugins.ledger_reader import PluginLedgerReader, Translate, as_it_is
from postroom.office.plugins.loading import LOAD_S, load
from postroom.office.plugins.plugin import Plugin, PluginState, PluginStatus
from postroom.office.plugins.timed_calls import CallFailed, TimedCaller
from postroom.office.ports import RoomPort
from postroom.settings.sections import PluginSettings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

log = logging.getLogger("postroom.plugins")

STOPPED = "plugin.stopped"
# With room for the rest of a message, which is bounded as a whole.
TEXT_BYTES = 128 * 1024
METADATA_BYTES = 16 * 1024
# Of a message as a whole; what goes beyond could not be stored.
ALL_METADATA_BYTES = 60 * 1024


class PluginRegistry:
    """Until `load` has found some, and without any, it changes nothing and costs nothing."""

    def __init__(self) -> None:
        self.is_empty = True
        self._plugins: tuple[Plugin, ...] = ()
        self._others: tuple[PluginStatus, ...] = ()
        self._room: RoomPort | None = None
        self._find: Callable[[], list[Candidate]] = list
        self._readers: list[PluginLedgerReader] = []
        self._running: list[asyncio.Task[None]] = []

    async def load(
        self,
        settings: PluginSettings,
        home: Path,
        *,
        room: RoomPort | None = None,
        installed: "Iterable[EntryPoint] | None" = None,
        load_s: float = LOAD_S,
    ) -> None:
        """What the settings allow, of installed packages and of `plugins/` in the room's folder. One that
        cannot be loaded is listed with its error; the others work. `room` is told when one stops."""
        self._room = room
        self._find = lambda: candidates(home / "plugins", installed)
        # To look through all installed packages takes as long as many a command.
        found = await asyncio.to_thread(self._find) if settings.allowed else []
        usable = {candidate.name: candidate for candidate in found if not candidate.problem}
        others = [_status(each, PluginState.BROKEN, each.problem) for each in found if each.problem]
        broken = {status.name for status in others}
        plugins: list[Plugin] = []
        for name in dict.fromkeys(settings.allowed):
            if name in usable:
                made = await _opened(usable[name], settings, home, load_s)
                if isinstance(made, Plugin):
                    plugins.append(made)
                else:
                    others.append(made)
            elif name not in broken:
                others.append(PluginStatus(name=name, state=PluginState.MISSING))
                log.warning("plugin %s is allowed, but it is neither installed nor in plugins/", name)
        others += [
            _status(candidate, PluginState.NOT_ALLOWED)
            for name, candidate in usable.items()
            if name not in settings.allowed
        ]
        self._plugins, self._others = tuple(plugins), tuple(others)
        self.is_empty = not plugins

    def statuses(self) -> list[PluginStatus]:
        """All that were named and, if any was, found, in the order in which mail passes them."""
        return [*(plugin.status for plugin in self._plugins), *self._others]

    async def look(self) -> list[PluginStatus]:
        """The same, with what came since `load`; it cannot run before the next one."""
        known = self.statuses()
        names = {status.name for status in known}
        return known + [
            _status(
                each, PluginState.BROKEN if each.problem else PluginState.NOT_ALLOWED, each.problem or None
            )
            for each in await asyncio.to_thread(self._find)
            if each.name not in names
        ]

    async def incoming(self, text: str, context: HookContext) -> str:
        """A person's text before it is routed and stored."""
        return (await self._through("transform_incoming", text, context)).text

    async def outgoing(self, text: str, context: HookContext) -> Transformed:
        """An answer before it is committed for delivery. Never call it inside a transaction."""
        return await self._through("transform_outgoing", text, context)

    async def _through(self, hook: str, text: str, context: HookContext) -> Transformed:
        metadata: dict[str, Any] = {}
        for plugin in self._plugins:
            function = plugin.hook(hook)
            if function is None or not plugin.running:
                continue
            try:
                made = await plugin.call(hook, function, text, context, check=_checker(text))
            except CallFailed:
                await self._tell_stopped(plugin)
                continue
            text = made.text
            metadata |= made.metadata
        return Transformed(text, metadata)

    async def start(self, room: RoomPort, translate: Translate = as_it_is) -> None:
        """Begins to tell the plugins what happens, from where each of them had come to."""
        self._room = room
        await self._let_go(room)
        self._readers = [
            PluginLedgerReader(room, plugin, translate=translate, stopped=self._tell_stopped)
            for plugin in self._plugins
            if plugin.listens
        ]
        self._running = [asyncio.create_task(reader.run()) for reader in self._readers]

    async def stop(self) -> None:
        for reader in self._readers:
            reader.stop()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._readers, self._running = [], []

    async def close(self) -> None:
        await self.stop()
        for plugin in self._plugins:
            await asyncio.to_thread(plugin.close)

    async def _let_go(self, room: RoomPort) -> None:
        """Plugins that are gone must not keep the ledger from being pruned."""
        listening = {f"plugin/{plugin.name}" for plugin in self._plugins if plugin.listens}
        for position in await room.positions():
            if position.name.startswith("plugin/") and position.hold and position.name not in listening:
                await room.run(c.SetPosition(name=position.name, seq=position.seq, actor=room.actor))

    async def _tell_stopped(self, plugin: Plugin) -> None:
        if plugin.running or plugin.told_stopped or self._room is None:
            return
        plugin.told_stopped = True
        data = {"failures": plugin.status.failures, "error": plugin.last_place}
        with contextlib.suppress(PostroomError):
            record = c.AddRecord(kind=STOPPED, key=plugin.name, data=data, actor=self._room.actor)
            await self._room.run(record)
        for reader in self._readers:
            if reader.plugin is plugin:
                reader.stop()


async def _opened(
    candidate: Candidate, settings: PluginSettings, home: Path, load_s: float
) -> Plugin | PluginStatus:
    caller = TimedCaller(candidate.name)
    try:
        loaded = await load(candidate, caller, home, limit_s=load_s)
    except CallFailed as error:
        log.error("plugin %s could not be loaded: %s", candidate.name, error)
        await asyncio.to_thread(caller.close)
        return _status(candidate, PluginState.BROKEN, str(error))
    status = _status(candidate, PluginState.RUNNING)
    return Plugin(status, loaded, caller, timeout_s=settings.timeout_s, failures=settings.failures)


def _status(candidate: Candidate, state: PluginState, error: str | None = None) -> PluginStatus:
    path = str(candidate.path) if candidate.path is not None else None
    return PluginStatus(
        name=candidate.name, state=state, source=candidate.source.value, path=path, last_error=error
    )


def _checker(before: str) -> Callable[[Any], Transformed]:
    def check(made: Any) -> Transformed:
        text, metadata = made, {}
        if isinstance(made, Transformed):
            text, metadata = made.text, made.metadata
        elif isinstance(made, dict):
            text, metadata = made.get("text"), made.get("metadata") or {}
        if not isinstance(text, str):
            raise CallFailed(f"it must return a text, or a dict with one, and returned {type(made).__name__}")
        if before.strip() and not text.strip():
            raise CallFailed("it returned an empty text, which would lose the message")
        text = str.__str__(text)
        try:
            size = len(msgspec.json.encode(text))
        except (UnicodeEncodeError, ValueError):
            raise CallFailed("it returned a text that cannot be written as UTF-8") from None
        if size > TEXT_BYTES and len(text) > len(before):
            raise CallFailed(f"it returned {size} bytes; at most {TEXT_BYTES} are allowed")
        return Transformed(text, _metadata(metadata))

    return check


def _metadata(metadata: Any) -> dict[str, Any]:
    if not isinstance(metadata, dict) or not all(isinstance(key, str) for key in metadata):
        raise CallFailed("its metadata must be a dict with texts as keys")
    try:
        data = msgspec.json.encode(metadata)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        raise CallFailed("its metadata cannot be written as JSON") from None
    if len(data) > METADATA_BYTES:
        raise CallFailed(f"its metadata has {len(data)} bytes; at most {METADATA_BYTES} are allowed")
    return msgspec.json.decode(data)


def fitting(metadata: dict[str, Any], beside: dict[str, Any]) -> dict[str, Any]:
    """What plugins say, unless the message has no room for it beside what the channel says."""
    size = len(msgspec.json.encode({**metadata, **beside}))
    return metadata if size <= ALL_METADATA_BYTES else {}
