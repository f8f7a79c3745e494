"""The lease of a lake in a folder: a file lock, which the system frees when its holder dies, however that
happens."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from postroom.clock import Clock, iso
from postroom.pipeline.errors import LakeReadOnly, PipelineBusy
from postroom.pipeline.lake.lease import LeaseHolder

LOCK = ".run.lock"
PROGRESS = ".run.progress"


class FolderLease:
    def __init__(self, folder: str, epoch: int) -> None:
        self.epoch = epoch
        self._progress = Path(folder) / PROGRESS

    def check(self) -> None:
        """A lock that is held cannot be taken away."""

    def report(self, progress: dict[str, Any]) -> None:
        """A disk that is full must not end a run for the sake of a note."""
        fresh = self._progress.with_name(f"{PROGRESS}.{os.getpid()}")
        with contextlib.suppress(OSError):
            fresh.write_bytes(msgspec.json.encode({"pid": os.getpid(), **progress}))
            fresh.replace(self._progress)

    def clear(self) -> None:
        with contextlib.suppress(OSError):
            self._progress.unlink()


@contextlib.contextmanager
def hold_folder(
    location: str, folder: str, clock: Clock, highest: Callable[[], int]
) -> Iterator[FolderLease]:
    try:
        os.makedirs(folder, exist_ok=True)
        handle = os.open(f"{folder}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LakeReadOnly(lake=location, reason=error.strerror or str(error)) from error
    try:
        found = _read(handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid, since = (found.pid, found.since) if found else ("unknown", "unknown")
            raise PipelineBusy(lake=location, pid=pid, since=since) from None
        found = _read(handle)
        epoch = 1 + (found.epoch if found is not None and found.epoch else highest())
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()} {iso(clock.now())} {epoch}\n".encode(), 0)
        lease = FolderLease(folder, epoch)
        try:
            yield lease
        finally:
            lease.clear()
    finally:
        os.close(handle)


def read_folder_holder(folder: str) -> LeaseHolder | None:
    try:
        handle = os.open(f"{folder}/{LOCK}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        holder = _read(handle)
        if holder is not None:
            holder.progress = _read_progress(folder, holder.pid)
        return holder
    finally:
        os.close(handle)
    return None


def _read(handle: int) -> LeaseHolder | None:
    words = os.pread(handle, 200, 0).decode("ascii", "replace").split()
    if len(words) < 2 or not words[0].isdigit():
        return None
    epoch = int(words[2]) if len(words) > 2 and words[2].isdigit() else 0
    return LeaseHolder(pid=int(words[0]), since=words[1], epoch=epoch)


def _read_progress(folder: str, pid: int) -> dict[str, Any] | None:
    """What the run of this process last told; None when it has told nothing, or somebody else did."""
    try:
        told = msgspec.json.decode((Path(folder) / PROGRESS).read_bytes())
        return told if told.pop("pid", None) == pid else None
    except (OSError, msgspec.MsgspecError, AttributeError):
        return None
