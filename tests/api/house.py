"""A house for API tests: a real room, real lanes, and a real server on a free port."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

import postroom
from postroom.api.app import OfficeApi
from postroom.api.dependencies import Dependencies
from postroom.app.application import application, build_dependencies
from postroom.app.backup_commands import BackupCommands
from postroom.app.http_server import listen, serving, url_of
from postroom.app.office_reloader import OfficeReloader
from postroom.clock import Clock, SystemClock
from postroom.services.office_context import ServerFacts
from postroom.settings import SettingsFile

TOKEN = "a-token-for-tests-0123456789"
AGENTS = ("lead", "coder", "reviewer")


def document(folder: Path, **changes: Any) -> dict[str, Any]:
    return {
        "workspace": {"path": str(folder / "work")},
        "agents": {name: {"name": name.title(), "provider": "script", "model": ""} for name in AGENTS},
        "teams": {"dev": {"name": "Dev", "agents": list(AGENTS), "leader_agent": "lead"}},
        "monitoring": {"heartbeat_interval": 0},
        **changes,
    }


@dataclass
class House:
    deps: Dependencies
    settings: SettingsFile
    home: Path
    url: str
    http: httpx2.AsyncClient
    """Speaks for the owner."""

    @property
    def room(self) -> postroom.Room:
        return self.deps.room

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    def stranger(self, **headers: str) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=60)

    async def until(self, path: str, ready: Any, within: float = 60.0) -> Any:
        """The body of an answer, once `ready` says it is as it should be."""
        async with asyncio.timeout(within):
            while True:
                body = (await self.http.get(path)).json()
                if ready(body):
                    return body
                await asyncio.sleep(0.02)


@asynccontextmanager
async def served(app: OfficeApi, host: str = "127.0.0.1") -> AsyncIterator[str]:
    listener = listen(host, 0)
    async with serving(app, listener):
        yield url_of(host, listener)


@asynccontextmanager
async def opened(
    folder: Path,
    *,
    works: bool = True,
    script: dict[str, Any] | None = None,
    clock: Clock | None = None,
    host: str = "127.0.0.1",
    fed_from: str | None = None,
    **changes: Any,
) -> AsyncIterator[House]:
    """`fed_from` is another store than its own, for executors that ask it."""
    home = folder / "home"
    home.mkdir()
    settings = SettingsFile(home / "settings.json")
    settings.replace(document(folder, **changes))
    (home / "script.json").write_text(json.dumps(script or {"pace": 0.01}))
    clock = clock or SystemClock()
    async with postroom.open(str(home / "postroom.db"), durability="relaxed") as room:
        control = OfficeReloader(room, settings, home, clock, works=works, environment={})
        await control.open()
        server = ServerFacts(started_at=clock.now(), backups=BackupCommands(home, os.environ))
        deps = build_dependencies(room, control, settings, home, clock, token=TOKEN, server=server)
        try:
            store = fed_from or str(home / "postroom.db")
            async with served(application(deps, store), host) as url:
                headers = {"authorization": f"Bearer {TOKEN}"}
                async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as http:
                    yield House(deps, settings, home, url, http)
        finally:
            await control.close(2)
