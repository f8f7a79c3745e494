"""What a process of an office does: everything, or with a database server a share of it."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from postroom.errors import Conflict, InvalidField


class ProcessRole(StrEnum):
    API = "api"
    WORKER = "worker"
    CHANNELS = "channels"
    HOUSEKEEPING = "housekeeping"


ALL = frozenset(ProcessRole)
# Who looks at a lock holds it for a moment; nobody is refused for that.
_LOOKS = 25
_PAUSE_S = 0.02


def roles(text: str | None) -> frozenset[ProcessRole]:
    """`api,worker`; nothing means all."""
    if not text:
        return ALL
    found: set[ProcessRole] = set()
    for word in text.split(","):
        try:
            found.add(ProcessRole(word.strip().lower()))
        except ValueError:
            known = ", ".join(ProcessRole)
            raise InvalidField("--roles", f"{word.strip()!r} is none; there are {known}") from None
    return frozenset(found)


class AlreadyRunning(Conflict):
    """Postroom runs already (process {pid}) and does: {role}. Stop it first: postroom stop"""

    code = "ALREADY_RUNNING"


class StoreTaken(Conflict):
    """The store {store} can have one process, and process {pid} has it and does: {roles}. Stop it, and start
    one process for all: postroom stop && postroom start --roles {together}"""

    code = "STORE_TAKEN"
    exit_code = 6


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """What a process of an office says of itself."""

    pid: int
    roles: tuple[ProcessRole, ...]
    version: str
    started_at: int
    url: str | None = None
    store: str | None = None
    """The file it owns, if it owns one."""
    store_digest: str | None = None
    """Of the address of a store that is no file."""


class RoleLocks:
    """The roles a process has taken: a locked file for each. The system frees them when it dies, so what
    a dead process left behind is known to be stale."""

    def __init__(self, folder: Path, taken: Iterable[ProcessRole]) -> None:
        self._folder = folder
        self._files: dict[ProcessRole, int] = {}
        try:
            for role in sorted(taken):
                self._files[role] = _locked(folder / f"{role}.lock", role)
        except BaseException:
            self.leave()
            raise

    def announce(self, running: Running) -> None:
        data = msgspec.json.encode(running)
        for handle in self._files.values():
            # In this order, and longer than what is there: whoever reads meanwhile finds a process.
            os.pwrite(handle, data, 0)
            os.ftruncate(handle, len(data))

    def leave(self) -> None:
        for handle in self._files.values():
            with contextlib.suppress(OSError):
                os.ftruncate(handle, 0)
            os.close(handle)
        self._files.clear()


def _locked(path: Path, role: ProcessRole) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for looks in range(_LOOKS, -1, -1):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            if looks:
                time.sleep(_PAUSE_S)
                continue
            said = _said(handle)
            os.close(handle)
            raise AlreadyRunning(pid=said.get("pid", "unknown"), role=role.value) from None
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps({"pid": os.getpid()}).encode(), 0)
    return handle


def _said(handle: int) -> dict[str, Any]:
    with contextlib.suppress(ValueError, OSError):
        found = json.loads(os.pread(handle, 65536, 0))
        if isinstance(found, dict):
            return found
    return {}


def check_alone(folder: Path, wanted: Iterable[ProcessRole], store: str | None) -> None:
    """A store that is a file has one owner, so roles cannot be shared out among processes."""
    for other in running(folder):
        if store is not None and other.store == store and other.pid != os.getpid():
            together = ",".join(sorted({*wanted, *other.roles}))
            raise StoreTaken(store=store, pid=other.pid, roles=", ".join(other.roles), together=together)


def running(folder: Path) -> list[Running]:
    """The processes that hold a role now, each once."""
    found: dict[int, Running] = {}
    for role in ProcessRole:
        try:
            handle = os.open(folder / f"{role}.lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            said = _said(handle)
            if "pid" in said:
                told = {"roles": [role], "version": "", "started_at": 0, **said}
                with contextlib.suppress(msgspec.ValidationError):
                    found.setdefault(said["pid"], msgspec.convert(told, Running))
        finally:
            os.close(handle)
    return list(found.values())
