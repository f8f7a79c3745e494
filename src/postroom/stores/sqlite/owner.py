"""One process owns the file. A lock file beside it says who, and the system frees it when the owner dies."""

import fcntl
import os
from pathlib import Path

from postroom.errors import StoreInUse, StoreReadOnly


class OwnerLock:
    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".lock")
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreReadOnly(path=str(path), reason=error.strerror or str(error)) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._file, 64).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            raise StoreInUse(path=str(path), pid=holder) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._file)
