"""Two API processes, three workers and one of channels: started, killed, started again as a supervisor would.

Each is the `postroom start` of a user. Nothing is shared but the home folder and the database server.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from postroom.app.roles import Running, running
from postroom.testing import FakeTelegram
from tests.acceptance.office import until
from tests.app.house_process import HouseProcess

PROCESSES = {
    "api-1": "api,housekeeping",
    "api-2": "api,housekeeping",
    "worker-1": "worker",
    "worker-2": "worker",
    "worker-3": "worker",
    "channels": "channels",
}
AGENTS = ("lead", "coder", "reviewer")
# What each conversation, named by its number, brings its person: a team with two hand-offs and one way back.
ANSWERS = ("I ask both about {}.", "Fixed {}.", "Read {}.", "All is well with {}.")
SCRIPT = {
    "pace": 1.0,
    "rules": [
        {"agent": "lead", "match": r"finished (?P<n>\w+)", "reply": "All is well with $n."},
        {
            "agent": "lead",
            "match": r"login (?P<n>\w+)",
            "seconds": 0.2,
            "reply": "I ask both about $n.",
            "hand_off": {"coder": "fix $n", "reviewer": "read $n"},
        },
        {
            "agent": "coder",
            "match": r"fix (?P<n>\w+)",
            "seconds": 1.0,
            "chunks": 3,
            "reply": "Fixed $n.",
            "hand_off": {"lead": "finished $n"},
        },
        {"agent": "reviewer", "match": r"read (?P<n>\w+)", "seconds": 0.5, "reply": "Read $n."},
    ],
}


class OfficeProcesses:
    def __init__(self, folder: Path, store: str, telegram: FakeTelegram, lease_s: float = 3.0) -> None:
        self.house = HouseProcess(
            folder,
            agents={name: {"name": name, "provider": "script", "model": ""} for name in AGENTS},
            teams={"dev": {"name": "Dev", "agents": list(AGENTS), "leader_agent": "lead"}},
            channels={
                "enabled": ["telegram"],
                "telegram": {"bot_token": telegram.token, "base_url": telegram.url},
            },
            limits={"lease_s": lease_s},
            guards={"attempts": 20, "crashes": 20},
            store={"url": store},
        )
        (self.house.home.path / "script.json").write_text(json.dumps(SCRIPT))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def headers(self) -> dict[str, str]:
        return self.house.headers

    def start(self, name: str) -> None:
        with (self.house.folder / f"{name}.out").open("ab") as output:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", "postroom", "start", "--foreground", "--roles", PROCESSES[name]],
                env=self.house.env,
                cwd=self.house.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def find(self, name: str) -> Running | None:
        """What a process says of itself, once it is ready."""
        process = self._processes[name]
        assert process.poll() is None, (self.house.folder / f"{name}.out").read_text()[-2000:]
        found = (each for each in running(self.house.home.run) if each.pid == process.pid)
        return next((each for each in found if each.version), None)

    async def ready(self, *names: str) -> None:
        await until(lambda: all(self.find(name) for name in names), within=120)

    def url(self, name: str) -> str:
        found = self.find(name)
        assert found is not None
        assert found.url is not None
        return found.url

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        process = self._processes[name]
        os.kill(process.pid, number)
        process.wait(120)

    def pause(self, name: str, number: signal.Signals) -> None:
        os.kill(self._processes[name].pid, number)

    def end(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait(120)

    def logged(self, *words: str) -> list[str]:
        """Lines of the log with any of these words."""
        lines: list[str] = []
        for file in sorted(self.house.home.logs.glob("*.log*")):
            told = (json.loads(line) for line in file.read_text().splitlines())
            lines += [each["text"] for each in told if any(word in each["text"] for word in words)]
        return lines


@asynccontextmanager
async def open_processes(
    folder: Path, store: str, telegram: FakeTelegram, **options: Any
) -> AsyncIterator[OfficeProcesses]:
    office = OfficeProcesses(folder, store, telegram, **options)
    try:
        # The first makes the tables; the others need not wait for each other.
        office.start("api-1")
        await office.ready("api-1")
        for name in PROCESSES:
            if name != "api-1":
                office.start(name)
        await office.ready(*PROCESSES)
        yield office
    finally:
        await asyncio.to_thread(office.end)
