"""What the services of the office stand on: its settings, its room, and the office at work in this process.

A server has all of it open. A single command opens the room only when a use case asks for it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from postroom.clock import Clock
from postroom.services.callers import Caller, CallerKind
from postroom.services.errors import OwnerOnly, ViewersOnlyLook
from postroom.services.use_cases import UseCases

if TYPE_CHECKING:  # a command that only reads settings needs neither the room nor the office
    from postroom.office.office import Office
    from postroom.office.plugins import PluginRegistry
    from postroom.runtime import Room
    from postroom.services.backups import BackupTool
    from postroom.settings.file import SettingsFile
    from postroom.settings.model import Settings


class OfficeControl(Protocol):
    """The office as it is now, and how it learns of changed settings."""

    @property
    def office(self) -> "Office": ...

    @property
    def settings(self) -> "Settings": ...

    @property
    def plugins(self) -> "PluginRegistry": ...

    async def apply(self) -> None:
        """Work by the settings as they are on the disk now."""
        ...


class ChannelControl(Protocol):
    """The clients of messaging platforms that run in this process."""

    def status(self) -> dict[str, dict[str, object]]: ...

    async def start(self, channel: str) -> bool: ...

    async def stop(self, channel: str) -> bool: ...

    async def accept_webhook(
        self, channel: str, method: str, headers: Mapping[str, str], query: Mapping[str, str], body: bytes
    ) -> tuple[int, str]:
        """What a platform pushed: the status and the text of the answer."""
        ...


class NoChannels:
    """A process without channels of its own: nothing can be started."""

    def status(self) -> dict[str, dict[str, object]]:
        return {}

    async def start(self, channel: str) -> bool:
        return False

    async def stop(self, channel: str) -> bool:
        return False

    async def accept_webhook(
        self, channel: str, method: str, headers: Mapping[str, str], query: Mapping[str, str], body: bytes
    ) -> tuple[int, str]:
        return 404, ""


class ProcessFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A process of this office, on any host. Times in microseconds; one that is `silent` was not heard of for
    longer than it should be."""

    pid: int
    roles: tuple[str, ...]
    version: str
    started_at: int
    host: str = ""
    url: str | None = None
    seen_at: int = 0
    silent: bool = False


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The server itself. `restart` asks it to stop and come back, None where it cannot; `check_restart`
    raises when it could not come back as things are. `processes` are those of this office, on all hosts;
    `host` is the name of this one, where there may be others."""

    port: int = 0
    started_at: int = 0
    restart: Callable[[], None] | None = None
    check_restart: Callable[[], None] = lambda: None
    backups: "BackupTool | None" = None
    processes: Callable[[], list["ProcessFacts"]] = list
    host: str = ""
    store: str = ""
    """What it is, for people; no secret is in it."""


class OfficeContext(Protocol):
    @property
    def file(self) -> "SettingsFile": ...

    @property
    def home(self) -> Path: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def channels(self) -> ChannelControl: ...

    @property
    def server(self) -> ServerFacts: ...

    async def control(self) -> OfficeControl: ...

    async def room(self) -> "Room": ...

    async def apply(self) -> None:
        """After a change of the settings, if the office is at work here."""
        ...


class OpenOffice(msgspec.Struct, frozen=True, kw_only=True):
    """Of a process that has everything open."""

    file: "SettingsFile"
    home: Path
    clock: Clock
    open_room: "Room"
    open_control: OfficeControl
    channels: ChannelControl = NoChannels()
    server: ServerFacts = ServerFacts()

    async def control(self) -> OfficeControl:
        return self.open_control

    async def room(self) -> "Room":
        return self.open_room

    async def apply(self) -> None:
        await self.open_control.apply()


class OfficeService(UseCases):
    """The use cases of one noun of the office. It belongs to its owner; agents get what they need for a
    turn."""

    def __init__(self, context: OfficeContext) -> None:
        self._context = context


def require_owner(caller: Caller) -> None:
    if not caller.is_owner:
        raise OwnerOnly


def require_member(caller: Caller, *, agents: bool = False) -> None:
    """For whoever takes part: writes, answers and stops. With `agents`, for those too."""
    if not caller.takes_part and not (agents and caller.kind is CallerKind.AGENT):
        raise OwnerOnly if caller.kind is not CallerKind.PERSON else ViewersOnlyLook


def require_viewer(caller: Caller, *, agents: bool = False) -> None:
    """For whoever may look into the office."""
    if not caller.may_look and not (agents and caller.kind is CallerKind.AGENT):
        raise OwnerOnly


def require_owner_or_agent(caller: Caller) -> None:
    if not caller.is_owner and caller.kind is not CallerKind.AGENT:
        raise OwnerOnly
