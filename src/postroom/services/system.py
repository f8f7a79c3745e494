"""The server itself: how it is, its channels, its log, and stopping it to come back."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import msgspec

from postroom.errors import PostroomError
from postroom.services.callers import Caller
from postroom.services.log_lines import last_lines
from postroom.services.office_context import OfficeService, ProcessFacts, require_owner, require_viewer

RESTART_S = 0.1


class RestartUnavailable(PostroomError):
    """Restart not available"""

    code = "RESTART"
    http_status = 501


class ChannelRefused(PostroomError):
    """{problem}"""

    code = "CHANNEL"
    http_status = 400
    exit_code = 5


class SystemStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Times in microseconds; `heartbeats` are the last ones sent, by agent, and `interval_s` how often.
    `processes` are those of this office, on all hosts; `store` says what holds everything, and `host` is the
    name of the host that tells this, where there may be others."""

    uptime: int
    port: int
    channels: dict[str, dict[str, Any]]
    interval_s: float
    heartbeats: dict[str, int]
    processes: list[ProcessFacts] = []
    store: str = ""
    host: str = ""


class ChatFile(msgspec.Struct, frozen=True):
    """A conversation that is kept as a file; `changed_at` in milliseconds."""

    team: str
    name: str
    changed_at: float


class SystemService(OfficeService):
    async def status(self, caller: Caller) -> SystemStatus:
        require_viewer(caller)
        context = self._context
        control = await context.control()
        settings = control.settings
        channels: dict[str, dict[str, Any]] = {name: {"running": False} for name in settings.channels.enabled}
        channels.update(context.channels.status())
        if not caller.is_owner:
            # Whoever scans it links their own phone.
            for status in channels.values():
                status.pop("pairing", None)
        return SystemStatus(
            uptime=max(0, context.clock.now() - context.server.started_at),
            port=context.server.port,
            channels=channels,
            interval_s=settings.monitoring.heartbeat_interval,
            heartbeats=await control.office.heartbeats.last_sent(),
            processes=await asyncio.to_thread(context.server.processes),
            # Where everything lies is nobody else's business.
            store=context.server.store if caller.is_owner else "",
            host=context.server.host,
        )

    async def apply(self, caller: Caller) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Start every channel that is switched on: those that were started, and those that were not."""
        require_owner(caller)
        control = await self._context.control()
        await control.apply()
        found = {name: await self._goes(name) for name in control.settings.channels.enabled}
        started = tuple(name for name, went in found.items() if went)
        return started, tuple(name for name, went in found.items() if not went)

    async def start_channel(self, caller: Caller, channel: str) -> None:
        require_owner(caller)
        await self._start(channel, f"Failed to start {channel} (unknown, already running, or missing token)")

    async def stop_channel(self, caller: Caller, channel: str) -> None:
        require_owner(caller)
        if not await self._context.channels.stop(channel):
            raise ChannelRefused(problem=f"{channel} is not running")

    async def restart_channel(self, caller: Caller, channel: str) -> None:
        require_owner(caller)
        await self._context.channels.stop(channel)
        await self._start(channel, f"Failed to restart {channel}")

    async def _start(self, channel: str, otherwise: str) -> None:
        """`otherwise` is said where the channel itself does not say why it cannot."""
        try:
            started = await self._context.channels.start(channel)
        except PostroomError as problem:
            raise ChannelRefused(problem=str(problem)) from problem
        if not started:
            raise ChannelRefused(problem=otherwise)

    async def _goes(self, channel: str) -> bool:
        try:
            await self._start(channel, "")
        except ChannelRefused:
            return False
        return True

    async def restart(self, caller: Caller) -> None:
        """The same process comes back. If it could not, it goes on."""
        require_owner(caller)
        server = self._context.server
        if server.restart is None:
            raise RestartUnavailable
        await asyncio.to_thread(server.check_restart)
        asyncio.get_running_loop().call_later(RESTART_S, server.restart)

    async def logs(self, caller: Caller, limit: int = 100) -> list[dict[str, Any]]:
        """The newest lines, the oldest first."""
        require_owner(caller)
        return await asyncio.to_thread(last_lines, self._context.home / "logs", limit)

    async def chats(self, caller: Caller) -> list[ChatFile]:
        """The newest first."""
        require_owner(caller)
        return await asyncio.to_thread(_chat_files, self._context.home / "chats")


def _chat_files(folder: Path) -> list[ChatFile]:
    found: list[ChatFile] = []
    with contextlib.suppress(OSError):
        for file in folder.glob("*/*.md"):
            with contextlib.suppress(OSError):
                found.append(ChatFile(file.parent.name, file.name, file.stat().st_mtime * 1000))
    return sorted(found, key=lambda chat: chat.changed_at, reverse=True)
