"""Copies of the store that the owner makes, tries out and throws away, in the room's folder `backups/store`.

To put one in the place of the store the server must stop; that is for the command line.
"""

import asyncio
import re
from datetime import datetime
from pathlib import Path
from typing import Protocol

import msgspec

from postroom.clock import file_stamp, from_datetime, iso
from postroom.errors import Invalid, NotFound
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeService, require_owner

FOLDER = Path("backups") / "store"
_NAME = re.compile(r"[\w.-]{1,100}\.db")


class BackupTool(Protocol):
    """Both raise a PostroomError that says what is wrong."""

    async def copy(self, target: Path) -> None:
        """A consistent copy of the store, verified, while everybody works."""
        ...

    async def verify(self, file: Path) -> None:
        """The restore drill: read all of a copy as a restore would, and verify its ledger."""
        ...


class BackupUnavailable(Invalid):
    """This process cannot make backups. Make one at the shell: postroom backup FILE --check"""

    code = "BACKUP_UNAVAILABLE"


class BackupUnknown(NotFound):
    """There is no backup "{name}" in {folder}."""

    code = "BACKUP_NOT_FOUND"


class BackupCopy(msgspec.Struct, frozen=True, kw_only=True):
    """`checked_at` is when all of it was last read and found sound. Times in microseconds."""

    name: str
    path: str
    size_bytes: int
    created_at: int
    checked_at: int | None


class BackupService(OfficeService):
    async def list_all(self, caller: Caller) -> list[BackupCopy]:
        """The newest first."""
        require_owner(caller)
        return await asyncio.to_thread(_list, self._context.home / FOLDER)

    async def make(self, caller: Caller) -> BackupCopy:
        """Returns when the copy is written and verified."""
        require_owner(caller)
        tool = self._tool()
        now = self._context.clock.now()
        file = self._context.home / FOLDER / f"postroom-{file_stamp(now)}.db"
        await asyncio.to_thread(lambda: file.parent.mkdir(mode=0o700, parents=True, exist_ok=True))
        await tool.copy(file)
        return await asyncio.to_thread(_note_check, file, now)

    async def drill(self, caller: Caller, name: str) -> BackupCopy:
        """Try a copy out as a restore would, without restoring it."""
        require_owner(caller)
        file = await self._find(name)
        await self._tool().verify(file)
        return await asyncio.to_thread(_note_check, file, self._context.clock.now())

    async def remove(self, caller: Caller, name: str) -> None:
        require_owner(caller)
        file = await self._find(name)
        for each in (file, _beside(file, "sha256"), _beside(file, "checked")):
            await asyncio.to_thread(each.unlink, missing_ok=True)

    def _tool(self) -> BackupTool:
        tool = self._context.server.backups
        if tool is None:
            raise BackupUnavailable
        return tool

    async def _find(self, name: str) -> Path:
        folder = self._context.home / FOLDER
        file = folder / name
        if not _NAME.fullmatch(name) or not await asyncio.to_thread(file.is_file):
            raise BackupUnknown(name=name[:100], folder=str(folder))
        return file


def _list(folder: Path) -> list[BackupCopy]:
    found = [_describe(file) for file in folder.glob("*.db")]
    return sorted(found, key=lambda copy: copy.created_at, reverse=True)


def _describe(file: Path) -> BackupCopy:
    about = file.stat()
    try:
        checked = from_datetime(datetime.fromisoformat(_beside(file, "checked").read_text().strip()))
    except (OSError, ValueError):
        checked = None
    return BackupCopy(
        name=file.name,
        path=str(file),
        size_bytes=about.st_size,
        created_at=about.st_mtime_ns // 1000,
        checked_at=checked,
    )


def _note_check(file: Path, now: int) -> BackupCopy:
    _beside(file, "checked").write_text(f"{iso(now)}\n")
    return _describe(file)


def _beside(file: Path, ending: str) -> Path:
    return file.with_name(f"{file.name}.{ending}")
