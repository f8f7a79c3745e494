"""One command line in this process, with what it wrote; and the same as a real process."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from postroom.terminal.cli.app import run


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Cli:
    """`cli("publish", "jobs", "x")` in this process; a store in a folder of its own."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.store = self.home / "postroom.db"
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *words: str, stdin: bytes = b"") -> Done:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self._capsys.readouterr()
        code = run(words)
        out, err = self._capsys.readouterr()
        return Done(code, out, err)

    def ok(self, *words: str, stdin: bytes = b"") -> Done:
        done = self(*words, stdin=stdin)
        assert done.code == 0, done.err
        return done

    def json(self, *words: str, stdin: bytes = b"") -> Any:
        return self.ok(*words, "--json", stdin=stdin).json

    def publish(self, queue: str, body: str, *more: str) -> str:
        return self.json("publish", queue, body, *more)["id"]

    def claim(self, queue: str, *more: str) -> tuple[str, str]:
        [message] = self.json("claim", queue, *more)
        return message["id"], message["claim_token"]


class Shell:
    """The command as a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("POSTROOM")},
            "POSTROOM_HOME": str(folder / "home"),
            "PYTHONWARNINGS": "error",
        }

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "postroom", *words],
            cwd=self.folder,
            env=self.env,
            text=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    def __call__(self, *words: str) -> Done:
        with self.start(*words, stdin=subprocess.DEVNULL) as process:
            out, err = process.communicate(timeout=240)
        return Done(process.returncode, out, err)


Tamper = Callable[[str], None]
