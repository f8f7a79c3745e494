"""What the API stands on, handed in by whoever puts the house together."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from postroom.api.auth.callers import CheckKey, no_keys
from postroom.api.stream.tail import Translate, nothing
from postroom.clock import Clock
from postroom.office.office import Office
from postroom.office.plugins import PluginRegistry
from postroom.runtime import Room
from postroom.services.container import Services
from postroom.settings import Settings, SettingsFile


class OfficeControl(Protocol):
    """The office as it is now, and how it learns of changed settings."""

    @property
    def office(self) -> Office: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def plugins(self) -> PluginRegistry: ...

    async def apply(self) -> None:
        """Work by the settings as they are on the disk now."""
        ...


class ChannelService(Protocol):
    """The clients of messaging platforms that run in this house."""

    def status(self) -> dict[str, dict[str, object]]: ...

    async def start(self, channel: str) -> bool: ...

    async def stop(self, channel: str) -> bool: ...


class NoChannels:
    """A house without channels of its own: nothing can be started."""

    def status(self) -> dict[str, dict[str, object]]:
        return {}

    async def start(self, channel: str) -> bool:
        return False

    async def stop(self, channel: str) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    room: Room
    services: Services
    staff: OfficeControl
    settings: SettingsFile
    home: Path
    clock: Clock
    token: str
    port: int = 0
    started_at: int = 0
    """When the house opened, in microseconds."""
    channels: ChannelService = field(default_factory=NoChannels)
    restart: Callable[[], None] | None = None
    """Asks the house to close and come back; None where it cannot."""
    check_restart: Callable[[], None] = lambda: None
    """Raises when the house could not come back as things are."""
    check_key: CheckKey = no_keys
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the house begins to close: then nobody waits any more."""
    redact: Callable[[str], str] = str
    """Takes secrets out of what is kept of a refused request."""
    translate: Translate = nothing
    """What listeners are told of a ledger event."""

    @property
    def logs(self) -> Path:
        return self.home / "logs"
