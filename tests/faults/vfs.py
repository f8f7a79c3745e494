"""SQLite's file layer over a `Disk`, so that every write and sync can fail, or be the last.

It has no shared memory and no locks: one connection at a time uses a disk.
"""
# ruff: noqa: N802 - the methods have SQLite's names

import itertools
from typing import Any

import apsw

from tests.faults.disk import Disk, Point

_numbers = itertools.count(1)

IO_ERRORS = {
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "delete": apsw.SQLITE_IOERR_DELETE,
    "read": apsw.SQLITE_IOERR_READ,
}


def io_error(kind: str) -> apsw.Error:
    error: Any = apsw.IOError(f"the disk failed to {kind}")
    error.extendedresult = IO_ERRORS[kind]
    return error


def full_error(kind: str) -> apsw.Error:
    """Only what needs space can find the disk full; the system reports a late finding as a failed sync."""
    return apsw.FullError("the disk is full") if kind == "write" else io_error(kind)


class FaultFile:
    """Duck-typed `apsw.VFSFile`: no base file is behind it."""

    def __init__(self, disk: Disk, name: str) -> None:
        self._disk = disk
        self._name = name
        disk.create(name)

    def xRead(self, amount: int, offset: int) -> bytes:
        return self._disk.read(self._name, amount, offset)

    def xWrite(self, data: Any, offset: int) -> None:
        self._disk.perform(Point("write", self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        self._disk.perform(Point("truncate", self._name, newsize))

    def xSync(self, flags: int) -> None:
        self._disk.perform(Point("sync", self._name))

    def xFileSize(self) -> int:
        return len(self._disk.files[self._name].current)

    def xFileControl(self, op: int, ptr: int) -> bool:
        return False

    def xDeviceCharacteristics(self) -> int:
        # What SQLite's own file layer says of a Linux disk: a cut never touches bytes beside those written.
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE

    def xSectorSize(self) -> int:
        return 4096

    def xClose(self) -> None:
        pass

    def excepthook(self, *_: Any) -> None:
        """Errors that SQLite itself passes over, such as those while closing."""

    def xLock(self, level: int) -> None:
        pass

    def xUnlock(self, level: int) -> None:
        pass

    def xCheckReservedLock(self) -> bool:
        return False


class FaultVFS(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self.name = f"faults-{next(_numbers)}"
        self.disk = disk
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> Any:
        flags[1] = flags[0]
        if name is None:
            # A temporary file of SQLite's own: never durable, so its disk does not matter.
            return FaultFile(Disk(), "temporary")
        return FaultFile(self.disk, name if isinstance(name, str) else name.filename())

    def excepthook(self, etype: Any, evalue: Any, etraceback: Any) -> bool:
        return True

    def xFullPathname(self, name: str) -> str:
        return name

    def xAccess(self, pathname: str, flags: int) -> bool:
        return pathname in self.disk.files

    def xDelete(self, filename: str, syncdir: bool) -> None:
        if filename in self.disk.files:
            self.disk.perform(Point("delete", filename, int(syncdir)))
