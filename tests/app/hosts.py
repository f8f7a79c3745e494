"""Hosts of one office on a database server: homes of their own that share nothing but the store."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from postroom.app.home import Home
from tests.app.house_process import HouseProcess, environment


class HostProcess(HouseProcess):
    """With a home that holds nothing yet, and `document` as its settings."""

    def __init__(self, folder: Path, name: str, document: dict[str, Any] | None = None) -> None:
        self.folder = folder / name
        self.home = Home(self.folder / "home")
        self.home.make()
        if document is not None:
            (self.home.path / "settings.json").write_text(json.dumps(document))
        (self.home.path / "script.json").write_text(json.dumps({"pace": 0.01}))
        self.env = {**environment(self.home), "POSTROOM_API_PORT": "0"}

    @property
    def token(self) -> str:
        return self.home.token.read_text().strip()

    def read_log(self) -> str:
        return "".join(file.read_text() for file in sorted(self.home.logs.glob("*.log")))

    def json(self, *words: str) -> Any:
        return json.loads(self.cli(*words, "--json").stdout)


Ended = Callable[[HostProcess], HostProcess]
"""Notes that the processes of a host end with the test."""


def first_host(folder: Path, store: str, **settings: Any) -> HostProcess:
    """As whoever has moved an office to a server starts it there."""
    return HostProcess(
        folder,
        "a",
        {
            "workspace": {"path": str(folder / "a" / "work")},
            "agents": {"coder": {"name": "Coder", "provider": "script", "model": ""}},
            "monitoring": {"heartbeat_interval": 0},
            "store": {"url": store},
            **settings,
        },
    )
