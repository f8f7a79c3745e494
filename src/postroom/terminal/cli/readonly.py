"""A SQLite store that is only read: beside the process that owns it, or on a file that nobody may write.

It takes no lock of ours and changes nothing, so that looking never disturbs.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

import apsw

from postroom.errors import StoreCorrupt, StoreReadOnly, StoreTooNew
from postroom.kernel.ports import StoreCapabilities, StoreFault, Transaction
from postroom.kernel.reader import Reader
from postroom.stores.sqlite.connection import ReadConnection
from postroom.stores.sqlite.errors import named, translated
from postroom.stores.sqlite.migrate import APPLICATION_ID, newest
from postroom.stores.sqlite.transaction import SqliteReads
from postroom.terminal.cli.errors import NoStore, StoreUnreadable

BUSY_MS = 5000
TABLES = frozenset({"meta", "scopes", "queues", "figures", "messages", "contents", "archive", "ledger"})


class ReadOnlyFile:
    capabilities = StoreCapabilities(reads_inline=True)

    def __init__(self, path: Path, *, immutable: bool = False) -> None:
        """`immutable` promises that nobody writes the file; SQLite then leaves nothing beside it."""
        self.path = path
        self._immutable = immutable
        self._name = str(path)
        if not path.is_file():
            raise NoStore(path=self._name)
        with translated(self._name):
            self.db = self._open()
            try:
                self._check()
            except BaseException:
                self.db.close()
                raise

    def _open(self) -> apsw.Connection:
        if not os.access(self.path, os.R_OK):
            raise StoreUnreadable(path=self._name, reason="permission denied")
        if self._immutable:
            return self._connect("mode=ro&immutable=1")
        try:
            return self._connect("mode=ro")
        except (apsw.CantOpenError, apsw.ReadOnlyError) as error:
            # In a folder where nothing can be written SQLite has no place for its lock file. Without a log
            # that waits to be merged the file is whole as it is.
            log = Path(f"{self._name}-wal")
            if log.exists() and log.stat().st_size:
                raise StoreUnreadable(path=self._name, reason=str(error)) from error
            return self._connect("mode=ro&immutable=1")

    def _connect(self, how: str) -> apsw.Connection:
        address = f"file:{quote(str(self.path.absolute()))}?{how}"
        db = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            db.set_busy_timeout(BUSY_MS)
            db.pragma("user_version")  # the file itself is opened by the first read
        except BaseException:
            db.close()
            raise
        return db

    def _check(self) -> None:
        if self.db.pragma("application_id") != APPLICATION_ID:
            raise StoreCorrupt(path=self._name, problem="it is no store of Postroom")
        version = self.db.pragma("user_version")
        if version > newest():
            raise StoreTooNew(path=self._name, found=version, known=newest())

        there = {name for (name,) in self.db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        missing = sorted(TABLES - there)
        if missing:
            raise StoreCorrupt(path=self._name, problem=f"its table {missing[0]} is missing")

    def check_pages(self) -> None:
        """Whether SQLite finds the file sound; it reads all of it."""
        with translated(self._name):
            problem = str(self.db.execute("PRAGMA quick_check(1)").fetchall()[0][0])
        if problem != "ok":
            raise StoreCorrupt(path=self._name, problem=" ".join(problem.split()))

    @contextlib.contextmanager
    def reader(self) -> Iterator[SqliteReads]:
        """Everything that is asked within one block is answered from one snapshot."""
        reads = SqliteReads(ReadConnection(self.db))
        with translated(self._name):
            if self.db.in_transaction:
                yield reads
                return
            self.db.execute("BEGIN")
            try:
                yield reads
            finally:
                self.db.execute("COMMIT")

    @contextlib.contextmanager
    def look(self) -> Iterator[Reader]:
        """The same, with the questions that people have."""
        with self.reader() as reads:
            yield Reader(reads)

    def version(self) -> int:
        """Another number when somebody has committed since it was last asked for."""
        with translated(self._name):
            return self.db.pragma("data_version")

    def begin(self) -> Transaction:
        self._refuse()

    def commit(self, tx: Transaction) -> None:
        self._refuse()

    def rollback(self, tx: Transaction) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StoreReadOnly(path=self._name, reason="it was opened for reading")

    def classify(self, error: Exception) -> tuple[StoreFault, Exception]:
        return StoreFault.FINAL, named(error, self._name) if isinstance(error, apsw.Error) else error

    def wipe_log(self) -> None:
        """Whoever only looks overwrites nothing."""

    def listen(self, wake: Callable[[Mapping[int, int]], None]) -> None:
        """Whoever looks asks again."""

    def left_behind(self, owner: str) -> str | None:
        """Whoever only looks takes nothing over."""
        return None

    def close(self) -> None:
        self.db.close()
