"""Lives and deaths of offices, and the search for what the dead leave behind."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from postroom.providers.environment import TURN_MARK

ROOT = Path(__file__).parents[3]
FAKES = ROOT / "tests" / "providers" / "fakes"
GONE_S = 60.0


class Nursery:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def life(self, folder: Path, kind: str, fatal: int | None) -> dict[str, Any]:
        """Its end: killed (9), or done after so many steps."""
        return self._bear(
            folder, {"folder": str(folder), "kind": kind, "fatal": fatal, "parent": programs(folder)}
        )

    def follow(self, folder: Path, plan: dict[str, Any], fatal: int | None) -> dict[str, Any]:
        """The end of a life that follows a plan."""
        return self._bear(folder, {"folder": str(folder), "plan": plan, "fatal": fatal})

    def _bear(self, folder: Path, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the nursery is gone"
        told = json.loads(line)
        if told["signal"] is None and told["code"]:
            raise AssertionError((folder / "trouble.txt").read_text()[-4000:])
        return told


@contextmanager
def nursery() -> Iterator[Nursery]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.acceptance.crashes.nursery"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield Nursery(process)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait(120)
        process.stdout.close()


def programs(folder: Path) -> dict[str, str]:
    """The environment in which agent programs are the fakes, each of which leaves a process behind."""
    bin_, state = folder / "bin", folder / "state"
    for each in (bin_, state, folder / "user"):
        each.mkdir(parents=True, exist_ok=True)
    program = bin_ / "claude"
    if not program.exists():
        program.write_text(
            f"#!{sys.executable} -IS\nimport runpy, sys\n"
            f"sys.path.insert(0, {str(FAKES)!r})\nsys.argv[0] = 'claude'\n"
            f"runpy.run_path({str(FAKES / 'claude')!r} + '.py', run_name='__main__')\n"
        )
        program.chmod(0o755)
    return {
        "PATH": f"{bin_}:/usr/bin:/bin",
        "HOME": str(folder / "user"),
        "FAKE": "leave-setsid leave-stubborn slowly",
        "FAKE_STATE": str(state),
    }


def orphans(folder: Path) -> list[str]:
    """Processes that a turn in this folder has started and that still live, after a fair while."""
    until = time.monotonic() + GONE_S
    while (left := _marked(folder)) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def _marked(folder: Path) -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                environment = file.read()
            with open(f"/proc/{name}/stat", "rb") as file:
                state = file.read().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        if TURN_MARK.encode() in environment and bytes(folder) in environment and state not in (b"Z", b"X"):
            found.append(name)
    return found
