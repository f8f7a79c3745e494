"""Writing a file so that a reader sees the old or the new one, whatever happens, and one writer at a time."""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from postroom.settings.errors import SettingsBusy

_POLL_S = 0.01


@contextlib.contextmanager
def locked(path: Path, patience_s: float) -> Iterator[None]:
    """Holds the lock of `path`: a file of its own, because `path` is replaced at each write."""
    handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _wait(handle, path, patience_s)
        yield
    finally:
        os.close(handle)


def _wait(handle: int, path: Path, patience_s: float) -> None:
    end = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= end:
                raise SettingsBusy(path=str(path), seconds=patience_s) from None
            time.sleep(_POLL_S)


def replace(path: Path, data: bytes) -> None:
    """Puts `data` in the place of `path`, on the disk, readable by its owner only."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        _fill(handle, data)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    sync_folder(path.parent)


def keep_copy(path: Path, data: bytes, ending: str) -> Path:
    """A new file beside `path` with `data`; an older copy is never overwritten."""
    number = 0
    while True:
        copy = path.with_name(f"{path.name}.{ending}" + (f"-{number}" if number else ""))
        try:
            handle = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            number += 1
            continue
        try:
            _fill(handle, data)
        except BaseException:
            with contextlib.suppress(OSError):
                copy.unlink()
            raise
        sync_folder(path.parent)
        return copy


def clear_leftovers(path: Path) -> None:
    """Removes what a writer that died left behind. Only for the holder of the lock."""
    for leftover in path.parent.glob(f".{path.name}.*.tmp"):
        with contextlib.suppress(OSError):
            leftover.unlink()


def _fill(handle: int, data: bytes) -> None:
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """What was put into it, or renamed there, is there after a power cut too."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
