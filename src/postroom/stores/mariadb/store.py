"""The MariaDB store: a pool of connections, transactions that say what became of them, and wake-ups.

Durable means what the server calls committed; `innodb_flush_log_at_trx_commit` is the server's own setting.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pymysql

from postroom.clock import Clock
from postroom.errors import StoreClosed, StoreFailed
from postroom.kernel.ledger import Head
from postroom.kernel.ports import StoreCapabilities, StoreFault, Transaction
from postroom.stores.mariadb.address import CONNECT_S, read_address
from postroom.stores.mariadb.connection import MariadbReadConnection, MariadbWriteConnection, run
from postroom.stores.mariadb.dialect import READ_SQL, WRITE_SQL
from postroom.stores.mariadb.errors import PoolDrained, PoolShut, classify, is_lost
from postroom.stores.mariadb.migrate import check_whole, migrate
from postroom.stores.mariadb.pool import MariadbPool
from postroom.stores.mariadb.transaction import (
    LOCK_VERSION,
    LOCK_VERSION_SHARED,
    MariadbReads,
    MariadbTransaction,
)
from postroom.stores.mariadb.wakeups import LedgerWatcher, OwnEvents
from postroom.stores.sql.contention import CommitUnknown
from postroom.stores.sql.due_memo import DueMemo
from postroom.stores.sql.patience import Patience
from postroom.stores.sql.steady_time import SteadyTime

log = logging.getLogger("postroom.mariadb")

WRITERS = 3
READERS = 5
BEGIN_READING = (
    # Who reads holds nobody up.
    b"SET SESSION idle_transaction_timeout = 60",
    b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    b"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)
# Who is not heard of for so many seconds is taken for a process that stands still.
STILL_S = 5
# The server counts a little more than what is sent.
PACKET_MARGIN = 1024
FATE_S = 10.0


class MariadbStore:
    capabilities = StoreCapabilities(writers=WRITERS, blocking=True, compares_tokens=True)

    def __init__(self, url: str, *, clock: Clock | None = None) -> None:
        self._address = read_address(url)
        self._place = self._address.place
        self._clock = clock
        """The server's, unless a test has its own."""
        self._time = SteadyTime()
        self._begins_alone = threading.local()
        self._patience = Patience(STILL_S)
        self._closed = False
        self._listener: LedgerWatcher | None = None
        self._own_events = OwnEvents()
        self._due_memo = DueMemo()
        try:
            with contextlib.closing(self._connect()) as db:
                migrate(db, self._place)
                check_whole(db, self._place)
                [(most,)] = MariadbReadConnection(db).fetch("SELECT @@max_allowed_packet")
        except pymysql.MySQLError as error:
            raise classify(error, self._place)[1] from error
        self._most_bytes = most - PACKET_MARGIN
        self._pool = MariadbPool(self._connect, WRITERS + READERS, CONNECT_S)

    def _connect(self) -> "pymysql.Connection[Any]":
        return self._address.connect()

    # writing

    def begin(self) -> Transaction:
        if self._closed:
            raise StoreClosed
        db = self._pool.take()
        try:
            alone = getattr(self._begins_alone, "value", False)
            connection = MariadbWriteConnection(db, self._most_bytes)
            lock = LOCK_VERSION if alone else LOCK_VERSION_SHARED
            [(version, now, ledger_time)] = connection.begin(lock, READ_SQL["begin"], self._patience.seconds)
        except BaseException as error:
            self._give_back(db, error)
            raise
        self._begins_alone.value = False
        if self._clock is not None:
            now = self._clock.now()
        return MariadbTransaction(connection, version, self._time.steady(now, ledger_time), self._due_memo)

    def commit(self, tx: Transaction) -> None:
        assert isinstance(tx, MariadbTransaction)
        changed, last = tx.finish()
        try:
            tx.connection.commit()
        except pymysql.MySQLError as error:
            if not changed or not is_lost(error):
                raise
            self._find_out(last, error)
            self._pool.give_back(tx.connection.db, lost=True)
        else:
            self._pool.give_back(tx.connection.db, lost=False)
        self._patience.reset()
        if last is not None:
            self._own_events.note(last.seq, tx.told)

    def _find_out(self, last: Head | None, error: pymysql.MySQLError) -> None:
        """What became of a transaction whose connection was lost while it was committed. Its last event is in
        the ledger, with its hash, or nothing of it is in the store."""
        if last is None:
            raise CommitUnknown("the connection was lost during a commit") from error
        until = time.monotonic() + FATE_S
        while (fate := self._ask_fate(last)) is None:
            if time.monotonic() >= until:
                raise CommitUnknown(
                    "the connection was lost during a commit, and the server is away"
                ) from error
            time.sleep(0.1)
        if not fate:
            raise error

    def _ask_fate(self, last: Head) -> bool | None:
        """Under the lock of the head, which the lost transaction has until it has ended."""
        try:
            with contextlib.closing(self._connect()) as db:
                connection = MariadbWriteConnection(db, self._most_bytes)
                connection.begin(WRITE_SQL["lock_head"], READ_SQL["head"], STILL_S)
                found = connection.fetch(READ_SQL["event_hash"], (last.seq,))
                connection.rollback()
        except pymysql.MySQLError:
            return None
        return found == [(last.hash,)]

    def rollback(self, tx: Transaction) -> None:
        assert isinstance(tx, MariadbTransaction)
        self._begins_alone.value = tx.must_wait
        self._patience.extend_after(tx.connection.silence_s)
        error: BaseException | None = None
        try:
            tx.connection.rollback()
        except pymysql.MySQLError as failed:
            error = failed
        self._give_back(tx.connection.db, error)

    def _give_back(self, db: "pymysql.Connection[Any]", error: BaseException | None) -> None:
        lost = not db.open or (error is not None and is_lost(error))
        if error is not None and not lost:
            try:
                run(db, [b"ROLLBACK"])
            except pymysql.MySQLError:
                lost = True
        self._pool.give_back(db, lost=lost)

    def classify(self, error: Exception) -> tuple[StoreFault, Exception]:
        return classify(error, self._place)

    def wipe_log(self) -> None:
        """The server's own business: its logs are for its administrator."""

    def listen(self, wake: Callable[[Mapping[int, int]], None]) -> None:
        self._listener = LedgerWatcher(self._connect, self._own_events, wake)

    def left_behind(self, owner: str) -> str | None:
        """Several processes may have it open; what a dead one had in hand comes free with its leases."""
        return None

    # reading

    @contextlib.contextmanager
    def reader(self) -> Iterator[MariadbReads]:
        if self._closed:
            raise StoreClosed
        try:
            db = self._begin_reading()
        except (pymysql.MySQLError, PoolDrained, PoolShut) as error:
            raise classify(error, self._place)[1] from error
        failed: BaseException | None = None
        try:
            yield MariadbReads(MariadbReadConnection(db))
            run(db, [b"COMMIT"])
        except pymysql.MySQLError as error:
            failed = error
            raise classify(error, self._place)[1] from error
        except BaseException as error:
            failed = error
            raise
        finally:
            self._give_back(db, failed)

    def _begin_reading(self) -> "pymysql.Connection[Any]":
        """A connection may have been lost since it was last used."""
        for _ in range(WRITERS + READERS):
            db = self._pool.take()
            try:
                run(db, BEGIN_READING)
            except pymysql.MySQLError as error:
                self._give_back(db, error)
                if not is_lost(error):
                    raise
            except BaseException as error:
                self._give_back(db, error)
                raise
            else:
                return db
        raise StoreFailed(path=self._place, reason="the server closes every connection")

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._listener is not None:
            self._listener.is_closed.set()
            self._listener.join()
        self._pool.close()
