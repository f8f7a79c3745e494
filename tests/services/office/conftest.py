"""The services of the office over a real store and settings on the disk; agents do not work by themselves."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom import Room
from postroom.app.application import build_dependencies
from postroom.app.office_reloader import OfficeReloader
from postroom.clock import SystemClock
from postroom.services import callers
from postroom.services.callers import Caller, CallerKind
from postroom.services.office import OfficeServices
from postroom.services.office_context import OpenOffice, ServerFacts
from postroom.settings import SettingsFile

AGENTS = ("lead", "coder", "reviewer")


@dataclass
class FakeChannels:
    """Channels are clients of platforms out of reach; these only know whether they run."""

    known: frozenset[str] = frozenset({"telegram"})
    running: set[str] = field(default_factory=set)

    def status(self) -> dict[str, dict[str, object]]:
        return {name: {"running": True} for name in self.running}

    async def start(self, channel: str) -> bool:
        if channel not in self.known or channel in self.running:
            return False
        self.running.add(channel)
        return True

    async def stop(self, channel: str) -> bool:
        if channel not in self.running:
            return False
        self.running.remove(channel)
        return True

    async def accept_webhook(
        self, channel: str, method: str, headers: Mapping[str, str], query: Mapping[str, str], body: bytes
    ) -> tuple[int, str]:
        raise NotImplementedError("no platform pushes in these tests")


@dataclass
class ServedOffice:
    services: OfficeServices
    room: Room
    control: OfficeReloader
    file: SettingsFile
    home: Path
    channels: FakeChannels

    owner: Caller = field(default_factory=lambda: callers.owner(actor="tester"))

    def agent(self, name: str, turn: str = "") -> Caller:
        """An agent during its turn about this message."""
        return Caller(kind=CallerKind.AGENT, name=name, actor=name, turn=turn)

    def stranger(self) -> Caller:
        """The holder of a key: the office is not theirs."""
        return Caller(kind=CallerKind.KEY, name="a program", actor="a program")

    def with_server(self, server: ServerFacts) -> OfficeServices:
        context = OpenOffice(
            file=self.file,
            home=self.home,
            clock=SystemClock(),
            open_room=self.room,
            open_control=self.control,
            channels=self.channels,
            server=server,
        )
        return OfficeServices(context)


def document(folder: Path, **changes: Any) -> dict[str, Any]:
    return {
        "workspace": {"path": str(folder / "work")},
        "agents": {name: {"name": name.title(), "provider": "script", "model": ""} for name in AGENTS},
        "teams": {"dev": {"name": "Dev", "agents": ["lead", "coder"], "leader_agent": "lead"}},
        "monitoring": {"heartbeat_interval": 0},
        **changes,
    }


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[ServedOffice]:
    home = tmp_path / "home"
    home.mkdir()
    file = SettingsFile(home / "settings.json")
    file.replace(document(tmp_path))
    clock = SystemClock()
    async with postroom.open(str(home / "postroom.db"), durability="relaxed") as room:
        control = OfficeReloader(room, file, home, clock, works=False, environment={})
        await control.open()
        deps = build_dependencies(room, control, file, home, clock, token="a-token-for-tests-0123456789")
        try:
            yield ServedOffice(deps.services, room, control, file, home, FakeChannels())
        finally:
            await control.close(2)
