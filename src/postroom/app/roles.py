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
    """`PORTAL` alone serves pages to people, and nothing to programs; with `API` there is the portal too."""

    API = "api"
    PORTAL = "portal"
    WORKER = "worker"
    CHANNELS = "channels"
    HOUSEKEEPING = "housekeeping"
    PIPELINE = "pipeline"


ALL = frozenset(ProcessRole)
# Who looks at a lock holds it for a moment; nobody is refused for that.
_LOOKS = 25
_PAUSE_S = 0.02
# Of one role, in one home.
MOST_PROCESSES = 64


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
    a dead process left behind is known to be stale.

    On a store that is no file, of which `store_digest` tells, several processes may have the same role."""

    def __init__(
        self, folder: Path, taken: Iterable[ProcessRole], *, store_digest: str | None = None
    ) -> None:
        self._files: dict[ProcessRole, int] = {}
        try:
            for role in sorted(taken):
                self._files[role] = _lock(folder, role, store_digest)
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


def _lock(folder: Path, role: ProcessRole, store_digest: str | None) -> int:
    files = [folder / f"{role}.lock"]
    if store_digest is not None:
        files += [folder / f"{role}.{number}.lock" for number in range(2, MOST_PROCESSES + 1)]
    said: dict[str, Any] = {}
    for file in files:
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _is_free(handle, 0 if len(files) > 1 else _LOOKS):
            os.ftruncate(handle, 0)
            first = {"pid": os.getpid(), "store_digest": store_digest}
            os.pwrite(handle, json.dumps(first).encode(), 0)
            return handle
        said = _said(handle)
        os.close(handle)
    raise AlreadyRunning(pid=said.get("pid", "unknown"), role=role.value)


def _is_free(handle: int, looks: int) -> bool:
    for left in range(looks, -1, -1):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if left:
                time.sleep(_PAUSE_S)
        else:
            return True
    return False


def _said(handle: int) -> dict[str, Any]:
    with contextlib.suppress(ValueError, OSError):
        found = json.loads(os.pread(handle, 65536, 0))
        if isinstance(found, dict):
            return found
    return {}


def check_alone(
    folder: Path, wanted: Iterable[ProcessRole], store: str | None, store_digest: str | None = None
) -> None:
    """A store that is a file has one owner, so roles cannot be shared out among processes; and who shares
    them has the same store."""
    roles = set(wanted)
    for other in running(folder):
        if other.pid == os.getpid():
            continue
        if store is not None and other.store == store:
            together = ",".join(sorted({*roles, *other.roles}))
            raise StoreTaken(store=store, pid=other.pid, roles=", ".join(other.roles), together=together)
        check_shared(other, roles, store_digest)


def check_shared(other: Running, wanted: Iterable[ProcessRole], store_digest: str | None) -> None:
    """Whether another process leaves room for these roles."""
    taken = set(wanted) & set(other.roles)
    if taken and (store_digest is None or other.store_digest != store_digest):
        raise AlreadyRunning(pid=other.pid, role=", ".join(sorted(taken)))


def running(folder: Path) -> list[Running]:
    """The processes that hold a role now, each once, the oldest first."""
    found: dict[int, Running] = {}
    for file in sorted(folder.glob("*.lock")):
        role = file.name.partition(".")[0]
        if role not in ALL:
            continue
        try:
            handle = os.open(file, os.O_RDWR | os.O_CLOEXEC)
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
    return sorted(found.values(), key=lambda each: each.started_at)


def find_apis(folder: Path) -> list[Running]:
    """The processes of this home that serve the API."""
    return [each for each in running(folder) if each.url and ProcessRole.API in each.roles]


def find_api(folder: Path) -> Running | None:
    return next(iter(find_apis(folder)), None)
