"""Backups made and tried by `postroom backup` and `postroom restore --check`, each in a process of its own: a
large store keeps nobody waiting, and what the shell does and what the server does cannot differ."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from postroom.errors import PostroomError


class BackupNotMade(PostroomError):
    """{problem}"""

    code = "BACKUP_NOT_MADE"
    http_status = 409


class BackupCommands:
    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self._environment = {**environment, "POSTROOM_HOME": str(home)}

    async def copy(self, target: Path) -> None:
        await self._run("backup", str(target), "--check")

    async def verify(self, file: Path) -> None:
        await self._run("restore", str(file), "--check")

    async def _run(self, *words: str) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "postroom", "--json", *words),
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, said = await process.communicate()
        except asyncio.CancelledError:
            process.terminate()
            await process.wait()
            raise
        if process.returncode:
            raise BackupNotMade(problem=_problem(said, process.returncode))


def _problem(said: bytes, status: int) -> str:
    last = said.strip().rpartition(b"\n")[2]
    try:
        return str(msgspec.json.decode(last)["error"]["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return f"It ended with status {status}: {last.decode(errors='replace')[:300]}"
