"""One run at a time on a lake. The system frees the lock when its holder dies, however that happens."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from postroom.clock import Clock, iso
from postroom.pipeline.errors import LakeReadOnly, PipelineBusy
from postroom.pipeline.lake.lake import Lake


@contextmanager
def locked(lake: Lake, clock: Clock) -> Iterator[None]:
    """On an object store there is no such lock; there Delta refuses the second of two commits."""
    if lake.folder is None:
        yield
        return
    folder = Path(lake.folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / ".run.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LakeReadOnly(lake=lake.location, reason=error.strerror or str(error)) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid, _, since = os.pread(handle, 200, 0).decode("ascii", "replace").strip().partition(" ")
            raise PipelineBusy(lake=lake.location, pid=pid or "unknown", since=since or "unknown") from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()} {iso(clock.now())}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def holder(lake: Lake) -> tuple[int, str] | None:
    """Who runs now, and since when."""
    if lake.folder is None:
        return None
    try:
        handle = os.open(Path(lake.folder) / ".run.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        pid, _, since = os.pread(handle, 200, 0).decode("ascii", "replace").strip().partition(" ")
        return (int(pid), since) if pid.isdigit() else None
    finally:
        os.close(handle)
    return None
