"""Agents that left: what they had is kept in `backups/agents/`, and can come back from there.

A backup is a folder with `agent.json` (the entry of the settings, teams, place) and `workspace/`.
"""

import contextlib
import errno
import os
import re
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from postroom.clock import iso
from postroom.office.agents.errors import BackupFailed, BackupNotFound, BackupUnusable
from postroom.settings import durable
from postroom.settings.names import is_id

FOLDER = "backups/agents"
ENTRY = "agent.json"
WORKSPACE = "workspace"

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\.[0-9TZ]+(?:-\d+)?")


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """`directory` is where the agent worked; `key` is its id as the settings write it."""

    agent: str
    key: str
    entry: dict[str, Any]
    teams: tuple[str, ...] = ()
    default: bool = False
    directory: str = ""
    removed_at: int = 0
    name: str = ""
    has_workspace: bool = False

    def __repr__(self) -> str:
        return f"Backup({self.name!r})"  # the entry may hold a secret


def keep(home: Path, backup: Backup) -> Backup:
    """Writes a new backup, without the workspace yet."""
    stamp = iso(backup.removed_at).partition(".")[0].replace("-", "").replace(":", "") + "Z"
    parent = home / FOLDER
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = 0
        while True:
            name = f"{backup.agent}.{stamp}" + (f"-{number}" if number else "")
            try:
                (parent / name).mkdir(mode=0o700)
                break
            except FileExistsError:
                number += 1
        named = msgspec.structs.replace(backup, name=name)
        durable.replace(parent / name / ENTRY, msgspec.json.format(msgspec.json.encode(named), indent=2))
    except OSError as error:
        raise BackupFailed(agent=backup.agent, reason=_reason(error)) from None
    return named


def discard(home: Path, backup: Backup) -> None:
    """For a removal that did not happen; only what `keep` made goes."""
    folder = home / FOLDER / backup.name
    with contextlib.suppress(OSError):
        (folder / ENTRY).unlink()
        folder.rmdir()


def move_workspace(home: Path, backup: Backup) -> tuple[bool, str]:
    """Into the backup; on another disk by a copy that is complete before the original goes. Returns whether
    it was moved, and else why not."""
    source, target = Path(backup.directory), home / FOLDER / backup.name / WORKSPACE
    try:
        os.rename(source, target)
        return True, ""
    except FileNotFoundError:
        return False, ""
    except OSError as error:
        if error.errno != errno.EXDEV:
            return False, _reason(error)
    try:
        _copy(source, target)
        shutil.rmtree(source)
    except (OSError, shutil.Error) as error:
        return False, f"it could not be moved to another disk ({_reason(error)})"
    return True, ""


def kept(home: Path) -> list[Backup]:
    """All backups, newest first; what cannot be read is left out."""
    found: list[Backup] = []
    with contextlib.suppress(OSError):
        for folder in (home / FOLDER).iterdir():
            with contextlib.suppress(BackupNotFound, BackupUnusable):
                found.append(find(home, folder.name))
    return sorted(found, key=lambda backup: (-backup.removed_at, backup.name))


def find(home: Path, name: str) -> Backup:
    """By its name, or by the id of an agent: then the newest."""
    if is_id(name):
        newest = next((backup for backup in kept(home) if backup.agent == name), None)
        if newest is None:
            raise BackupNotFound(name=name)
        return newest
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BackupNotFound(name=name)
    folder = home / FOLDER / name
    try:
        backup = msgspec.json.decode((folder / ENTRY).read_bytes(), type=Backup)
    except OSError:
        raise BackupNotFound(name=name) from None
    except msgspec.DecodeError:
        raise BackupUnusable(name=name, reason=f"its {ENTRY} is damaged") from None
    if not is_id(backup.agent) or backup.key.lower() != backup.agent:
        raise BackupUnusable(name=name, reason=f"its {ENTRY} names no agent")
    workspace = folder / WORKSPACE
    has = workspace.is_dir() and not workspace.is_symlink()
    return msgspec.structs.replace(backup, name=name, has_workspace=has)


def copy_workspace(home: Path, backup: Backup, target: Path) -> Callable[[], None]:
    """The workspace to its place, at once and whole, and never over what is there. Returns what takes it away
    again."""
    if not backup.has_workspace:
        return lambda: None
    if os.path.lexists(target):
        raise BackupUnusable(name=backup.name, reason=f"{target} is there again; move it away first")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(home / FOLDER / backup.name / WORKSPACE, target)
    except (OSError, shutil.Error) as error:
        raise BackupUnusable(name=backup.name, reason=_reason(error)) from None
    return lambda: shutil.rmtree(target, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    """Links stay links; pipes and sockets stay behind. `target` appears when it is complete."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        shutil.copytree(source, partial, symlinks=True, ignore=_special)
        os.rename(partial, target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _special(folder: str, names: list[str]) -> set[str]:
    def odd(name: str) -> bool:
        mode = os.lstat(os.path.join(folder, name)).st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))

    return {name for name in names if odd(name)}


def _reason(error: Exception) -> str:
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()[:300]
