"""The house as a real process of its own, for tests that start it, stop it and kill it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from postroom.app.home import Home
from postroom.app.roles import Running, running


def environment(home: Home) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM")}
    return {**inherited, "POSTROOM_HOME": str(home.path)}


class HouseProcess:
    def __init__(self, folder: Path, **settings: Any) -> None:
        self.home = Home(folder / "home")
        self.folder = folder
        self.home.make()
        document: dict[str, Any] = {
            "workspace": {"path": str(folder / "work")},
            "agents": {"coder": {"name": "Coder", "provider": "script", "model": ""}},
            "monitoring": {"heartbeat_interval": 0},
            "api": {"port": 0},
            **settings,
        }
        self.home.settings.replace(document)
        (self.home.path / "script.json").write_text(json.dumps({"pace": 0.01}))
        self.env = environment(self.home)

    @classmethod
    def at(cls, home: Path) -> "HouseProcess":
        """That of a home which is there already."""
        found = cls.__new__(cls)
        found.home, found.folder = Home(home), home.parent
        found.home.make()
        found.env = environment(found.home)
        return found

    def cli(self, *words: str, check: bool = True, timeout: float = 240) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "postroom", *words],
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def start(self) -> Running:
        self.cli("start")
        return self.now()

    def now(self) -> Running:
        [found] = running(self.home.run)
        return found

    @property
    def url(self) -> str:
        url = self.now().url
        assert url
        return url

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.home.token.read_text().strip()}"}

    def kill(self) -> None:
        pid = self.now().pid
        os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + 120
        while running(self.home.run) and time.monotonic() < end:
            time.sleep(0.01)

    def end(self) -> None:
        for found in running(self.home.run):
            with contextlib.suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGKILL)
