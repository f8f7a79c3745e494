"""The SQLite store: opening and owning the file, its writer connection, and a few for reading.

Durable means synced: `synchronous=FULL` in WAL mode. `durability="relaxed"` trades the last moments before a
power cut for speed; a crash of the process alone loses nothing either way.
"""

import contextlib
import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeVar

import apsw

from postroom.clock import Clock, SystemClock
from postroom.errors import (
    LedgerBroken,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFailed,
    StoreHalfMoved,
    StoreMoved,
    StoreReadOnly,
)
from postroom.kernel.ledger import Head, verify
from postroom.kernel.ports import StoreCapabilities, StoreFault, Transaction
from postroom.stores.sql.steady_time import SteadyTime
from postroom.stores.sql.transfer import MARK
from postroom.stores.sqlite.connection import ReadConnection, WriteConnection
from postroom.stores.sqlite.errors import named, translated
from postroom.stores.sqlite.heads import HeadKeeper, SignedHeads
from postroom.stores.sqlite.migrate import copy_to, migrate
from postroom.stores.sqlite.owner import OwnerLock
from postroom.stores.sqlite.transaction import SqliteReads, SqliteTransaction, WriterMemory

log = logging.getLogger("postroom.sqlite")

E = TypeVar("E", bound=BaseException)

Durability = Literal["full", "relaxed"]

# One more than a room has threads that read, so that its event loop never waits for one of them.
READERS = 5
CHECKPOINT_PAGES = 4000
WHOLE_CHECK_BYTES = 1 << 28
TAIL_EVENTS = 1000


class SqliteStore:
    def __init__(
        self,
        path: Path | None,
        *,
        durability: Durability = "full",
        backups: Path | None = None,
        vfs: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Without a path it is in memory, and gone when it is closed.

        `vfs` names another SQLite file layer; one without shared memory, so reads share the writer.
        """
        self.path = path
        self._name = ":memory:" if path is None else str(path)
        self._vfs = vfs
        self._is_shared = path is None or vfs is not None
        self.capabilities = StoreCapabilities(reads_inline=not self._is_shared)
        self._clock = clock or SystemClock()
        self._time = SteadyTime()
        self._closed = False
        self._lock: OwnerLock | None = None
        self._heads: SignedHeads | None = None
        self._keeper: HeadKeeper | None = None
        self._tx: SqliteTransaction | None = None
        self._memory: WriterMemory | None = None
        self._version = 0
        self._writer_use = threading.Lock()
        self._readers: queue.LifoQueue[apsw.Connection | None] = queue.LifoQueue()
        if path is not None and vfs is None:
            try:
                make_folders(path.parent)
            except OSError as error:
                raise StoreReadOnly(path=self._name, reason=error.strerror or str(error)) from error
            self._lock = OwnerLock(path)
            self._heads = SignedHeads(path)
        try:
            if self._heads is not None:
                self._heads.check_present()
            with translated(self._name):
                self._db = apsw.Connection(self._name, vfs=vfs, statementcachesize=500)
                self._set_up_writer(self._db, durability)
                if backups is None and path is not None:
                    backups = path.parent / "backups"
                self.backup_made = migrate(self._db, self._name, backups)
                clean = self._check()
                self._dead = None if clean else self._owner()
                if self._heads is not None and durability == "full":
                    self._heads.check(SqliteReads(ReadConnection(self._db)))
                self._mark_clean(False)
            if self._heads is not None and path is not None:
                self._keeper = HeadKeeper(path, self._heads, self._committed_head)
        except BaseException:
            self._give_up_open()
            raise
        for _ in range(0 if self._is_shared else READERS):
            self._readers.put(None)

    def _set_up_writer(self, db: apsw.Connection, durability: Durability) -> None:
        if self._vfs is not None:
            db.pragma("locking_mode", "exclusive")
        _keep_plans(db)
        db.set_busy_timeout(5000)
        if db.pragma("user_version") == 0:
            db.pragma("auto_vacuum", "incremental")
        mode = db.pragma("journal_mode", "wal")
        if mode != ("memory" if self.path is None else "wal"):
            raise StoreFailed(path=self._name, reason=f"write-ahead logging is not to be had ({mode})")
        db.pragma("synchronous", "full" if durability == "full" else "normal")
        db.pragma("cache_size", -65536)
        db.pragma("temp_store", "memory")
        db.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        db.pragma("journal_size_limit", 64 << 20)

    def _give_up_open(self) -> None:
        self._closed = True
        if hasattr(self, "_db"):
            with contextlib.suppress(apsw.Error):
                self._db.close(True)
        if self._lock is not None:
            self._lock.release()

    def _check(self) -> bool:
        """After an unclean end the pages (not of a very large file), and always the ledger's tail.

        Whether it was closed, or is new."""
        if self._db.execute("SELECT 1 FROM meta WHERE name = ?", (MARK,)).fetchall():
            raise StoreHalfMoved(path=self._name)
        clean = self._db.execute("SELECT value FROM meta WHERE name = 'clean'").fetchone()
        if clean is not None and clean[0] != "1":
            size = self._db.pragma("page_count") * self._db.pragma("page_size")
            if size <= WHOLE_CHECK_BYTES:
                problem = str(self._db.execute("PRAGMA quick_check(1)").fetchall()[0][0])
                if problem != "ok":
                    raise StoreCorrupt(path=self._name, problem=problem)
            else:
                log.warning(
                    "%s has %d MB and was not closed cleanly; run a full check", self._name, size >> 20
                )
        reads = SqliteReads(ReadConnection(self._db))
        chain = reads.chain()
        head, anchor = chain.head, chain.anchor
        start = max(anchor.seq, head.seq - TAIL_EVENTS)
        events = reads.events(start, TAIL_EVENTS + 1)
        begin = Head(start, events[0].previous_hash) if events else anchor
        try:
            verify(events, begin, head)
        except LedgerBroken as error:
            raise StoreCorrupt(path=self._name, problem=str(error)) from error
        return clean is None or clean[0] == "1"

    def _owner(self) -> str | None:
        found = self._db.execute("SELECT value FROM meta WHERE name = 'owner'").fetchone()
        return None if found is None else str(found[0])

    def left_behind(self, owner: str) -> str | None:
        """One process owns the file, so whoever had it open before this one is dead."""
        with self._writer_use, translated(self._name):
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('owner', ?)", (owner,))
        dead, self._dead = self._dead, None
        return dead

    def _mark_clean(self, clean: bool) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES ('clean', ?)", ("1" if clean else "0",))

    def _committed_head(self) -> Head | None:
        memory = self._memory
        return None if memory is None else memory.head

    # writing: one thread at a time

    def begin(self) -> Transaction:
        if self._closed:
            raise StoreClosed
        if self._keeper is not None and self._keeper.is_moved:
            raise StoreMoved(path=self._name)
        self._writer_use.acquire()
        try:
            if self._memory is None:
                self._version += 1
                self._memory = WriterMemory(ReadConnection(self._db), self._version)
            now = self._time.steady(self._clock.now(), self._memory.head.time)
            tx = self._tx = SqliteTransaction(WriteConnection(self._db), self._memory, now)
        except BaseException as error:
            self._memory = None
            self._writer_use.release()
            raise self._name_error(error) from error
        return tx

    def commit(self, tx: Transaction) -> None:
        mine = self._tx
        assert mine is not None
        assert tx is mine
        try:
            mine.finish()
            mine.writer.commit()
        except apsw.Error as error:
            raise self._name_error(error) from error
        mine.settle()
        self._version = mine.memory.version
        self._tx = None
        self._writer_use.release()

    def rollback(self, tx: Transaction) -> None:
        """Also after a commit that failed: what is in the file then must be looked at anew."""
        mine = self._tx
        assert mine is not None
        assert tx is mine
        self._tx = None
        if mine.writer.is_open:
            self._memory = None
        try:
            with translated(self._name):
                mine.writer.rollback()
        finally:
            self._writer_use.release()

    def classify(self, error: Exception) -> tuple[StoreFault, Exception]:
        return StoreFault.FINAL, self._name_error(error)

    def _name_error(self, error: E) -> E | StoreError:
        return named(error, self._name) if isinstance(error, apsw.Error) else error

    def listen(self, wake: Callable[[Mapping[int, int]], None]) -> None:
        """No other process writes."""

    def wipe_log(self) -> None:
        """Into the file, where old pages are wiped; what a reader looks at stays until the next time."""
        with self._writer_use, translated(self._name):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    # reading: any thread

    @contextlib.contextmanager
    def reader(self) -> Iterator[SqliteReads]:
        if self._closed:
            raise StoreClosed
        if self._is_shared:
            with self._writer_use, translated(self._name):
                yield SqliteReads(ReadConnection(self._db))
            return
        db = self._readers.get()
        if self._closed:
            self._readers.put(db)
            raise StoreClosed
        try:
            with translated(self._name):
                if db is None:
                    db = self._open_reader()
                db.execute("BEGIN")
                try:
                    yield SqliteReads(ReadConnection(db))
                finally:
                    db.execute("COMMIT")
        finally:
            self._readers.put(db)

    def _open_reader(self) -> apsw.Connection:
        db = apsw.Connection(self._name, flags=apsw.SQLITE_OPEN_READONLY, statementcachesize=100)
        _keep_plans(db)
        db.set_busy_timeout(5000)
        return db

    def backup(self, target: Path) -> None:
        """A consistent copy while the room stays open."""
        with self.reader() as reads, translated(str(target)):
            copy_to(reads.connection.db, target)

    def close(self) -> None:
        if self._closed:
            return
        with self._writer_use:
            self._closed = True
            if self._keeper is not None:
                self._keeper.close()
            if not self._is_shared:
                for _ in range(READERS):
                    db = self._readers.get()
                    if db is not None:
                        db.close()
                # For whoever came meanwhile and now waits: to see that it is closed.
                for _ in range(READERS):
                    self._readers.put(None)
            try:
                with translated(self._name):
                    self._mark_clean(True)
            finally:
                try:
                    self._db.close(True)
                finally:
                    if self._lock is not None:
                        self._lock.release()


def make_folders(folder: Path) -> None:
    """With their entries synced: a power cut must not take the folder away from under a durable file."""
    if folder.exists():
        return
    make_folders(folder.parent)
    folder.mkdir(exist_ok=True)
    parent = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def _keep_plans(db: apsw.Connection) -> None:
    """Else SQLite looks at bound values to match partial indexes, and prepares anew at every call."""
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
