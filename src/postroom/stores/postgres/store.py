"""The PostgreSQL store: a pool of connections, transactions that say what became of them, and wake-ups.

Durable means what the server calls committed; `synchronous_commit` is the server's own setting.
"""

import contextlib
import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

from postroom.clock import Clock
from postroom.errors import StoreClosed, StoreFailed
from postroom.kernel.ports import StoreCapabilities, StoreFault, Transaction
from postroom.stores.postgres.connection import (
    CONNECT_S,
    PostgresReadConnection,
    PostgresWriteConnection,
    adapt,
    connect_options,
    is_pooled,
    set_up,
)
from postroom.stores.postgres.dialect import READ_SQL
from postroom.stores.postgres.errors import classify, is_lost
from postroom.stores.postgres.floors import Floors
from postroom.stores.postgres.frozen import NAME, STILL_S
from postroom.stores.postgres.migrate import check_whole, migrate
from postroom.stores.postgres.sealing import BY_ROW, SealingWatch
from postroom.stores.postgres.transaction import (
    LOCK_VERSION,
    LOCK_VERSION_SHARED,
    PostgresReads,
    PostgresTransaction,
)
from postroom.stores.postgres.wakeups import Listener
from postroom.stores.sql.contention import CommitUnknown
from postroom.stores.sql.due_memo import DueMemo
from postroom.stores.sql.gathered_news import GatheredNews
from postroom.stores.sql.patience import Patience
from postroom.stores.sql.steady_time import SteadyTime

log = logging.getLogger("postroom.postgres")

WRITERS = 3
READERS = 5
# A notification holds less than 8,000 bytes.
MOST_LINES = 200
NOTIFY = "SELECT pg_notify($1, $2)"
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
FATE_S = 10.0
FOLD_S = 5.0


class PostgresStore:
    capabilities = StoreCapabilities(writers=WRITERS, blocking=True, compares_tokens=True)

    def __init__(self, url: str, *, clock: Clock | None = None) -> None:
        self._url = url
        self._place = name_place(url)
        self._clock = clock
        """The server's, unless a test has its own."""
        self._time = SteadyTime()
        self._name = uuid.uuid4().hex
        """By which this process knows its own notifications."""
        self._options = {**connect_options(url), "application_name": name_sessions(url, self._name)}
        self._begins_alone = threading.local()
        self._patience = Patience(STILL_S)
        self._closed = False
        self._listener: Listener | None = None
        self._is_pooled = False
        self._fold_at = 0.0
        self._by_row = False
        self._sealing = SealingWatch()
        self._due_memo = DueMemo()
        self._floors: Floors | None = None
        try:
            with psycopg.connect(url, **self._options) as db:
                self._is_pooled = is_pooled(db)
            if self._is_pooled:
                self._options["prepare_threshold"] = None
            elif clock is None:
                # They go by the server's time, and by the names of its sessions.
                self._floors = Floors()
            with self._connect() as db:
                migrate(db, self._place)
                check_whole(db, self._place)
                [(oid,)] = db.execute("SELECT 'figures'::regclass::oid").fetchall()
        except psycopg.Error as error:
            raise classify(error, self._place)[1] from error
        self._channel = f"postroom_{oid}"
        self._pool: ConnectionPool[psycopg.Connection] = ConnectionPool(
            url,
            min_size=1,
            max_size=WRITERS + READERS,
            kwargs=self._options,
            configure=self._set_up,
            timeout=CONNECT_S,
            open=True,
            name="postroom",
        )
        self._teller: psycopg.Connection | None = None
        self._news = GatheredNews(self._notify, "postroom-notifier")
        self._news.start()

    def _connect(self) -> psycopg.Connection:
        db = psycopg.connect(self._url, **self._options)
        self._set_up(db)
        return db

    def _set_up(self, db: psycopg.Connection) -> None:
        (adapt if self._is_pooled else set_up)(db)

    # writing

    def begin(self) -> Transaction:
        if self._closed:
            raise StoreClosed
        db = self._pool.getconn()
        try:
            alone = getattr(self._begins_alone, "value", False)
            connection = PostgresWriteConnection(db, is_pooled=self._is_pooled)
            lock = LOCK_VERSION if alone else LOCK_VERSION_SHARED
            [(version, now, ledger_time, sealed_by)] = connection.begin(
                lock, READ_SQL["begin"], self._more_time()
            )
        except BaseException as error:
            self._give_back(db, error)
            raise
        self._begins_alone.value = False
        if self._clock is not None:
            now = self._clock.now()
        time_now = self._time.steady(now, ledger_time)
        self._by_row = sealed_by == BY_ROW
        return PostgresTransaction(
            connection,
            version,
            time_now,
            self._due_memo,
            floors=self._floors,
            ledger_time=ledger_time,
            by_row=self._by_row,
            folds=self._must_fold(),
        )

    def _more_time(self) -> tuple[str, int] | None:
        if not self._patience.is_longer:
            return None
        seconds = self._patience.seconds
        return f"{self._options['application_name']}{seconds:02d}", seconds

    def _must_fold(self) -> bool:
        """Now and then, since adding up changes rows that every commit would change otherwise."""
        now = time.monotonic()
        if now < self._fold_at:
            return False
        self._fold_at = now + FOLD_S
        return True

    def commit(self, tx: Transaction) -> None:
        assert isinstance(tx, PostgresTransaction)
        number = tx.finish()
        try:
            tx.connection.commit()
        except psycopg.Error as error:
            if number is None or not is_lost(error):
                raise
            self._find_out(number, error)
        self._patience.reset()
        self._pool.putconn(tx.connection.db)
        if tx.has_news:
            self._news.tell(tx.woken)

    def _notify(self, woken: Mapping[int, int]) -> None:
        try:
            if self._teller is None or self._teller.broken:
                self._teller = self._connect()
            self._teller.execute(NOTIFY, (self._channel, self._write_news(woken)))
        except (psycopg.Error, OSError) as error:
            log.info("others are not told of a commit: %s", error)

    def _write_news(self, woken: Mapping[int, int]) -> str:
        """Who waits on a line that is not named looks again by itself."""
        return json.dumps([self._name, list(woken.items())[:MOST_LINES]])

    def _find_out(self, number: str, error: psycopg.Error) -> None:
        """What became of a transaction whose connection was lost while it was committed."""
        until = time.monotonic() + FATE_S
        while (fate := self._ask_fate(number)) not in ("committed", "aborted"):
            if time.monotonic() >= until:
                raise CommitUnknown(f"the connection was lost during a commit ({fate})") from error
            time.sleep(0.1)
        if fate == "aborted":
            raise error

    def _ask_fate(self, number: str) -> str:
        try:
            with self._connect() as db:
                [(fate,)] = db.execute("SELECT pg_xact_status($1::text::xid8)", (number,)).fetchall()
        except psycopg.OperationalError:
            return "the server is away"
        return fate or "too long ago to be known"

    def rollback(self, tx: Transaction) -> None:
        assert isinstance(tx, PostgresTransaction)
        self._begins_alone.value = tx.must_wait
        db, silence_s = tx.connection.db, tx.connection.silence_s
        error: BaseException | None = None
        try:
            tx.connection.rollback()
        except psycopg.Error as failed:
            error = failed
        if self._give_back(db, error):
            self._patience.extend_after(silence_s)

    def _give_back(self, db: psycopg.Connection, error: BaseException | None) -> bool:
        """Whether it was lost. One not fit for use is closed, and others lost with it are looked for."""
        lost = db.broken or (isinstance(error, psycopg.Error) and is_lost(error))
        if not lost and error is not None:
            try:
                db.execute("ROLLBACK")
            except psycopg.Error:
                lost = True
        if lost:
            db.close()
        self._pool.putconn(db)
        if lost and not self._closed:
            with contextlib.suppress(psycopg.Error, PoolTimeout):
                self._pool.check()
        return lost

    def classify(self, error: Exception) -> tuple[StoreFault, Exception]:
        return classify(error, self._place)

    def wipe_log(self) -> None:
        """The server's own business: its logs are for its administrator."""

    def listen(self, wake: Callable[[Mapping[int, int]], None]) -> None:
        self._listener = Listener(
            self._connect, self._channel, self._name, wake, hears=not self._is_pooled, tend=self._tend
        )

    def _tend(self, db: psycopg.Connection) -> None:
        if self._by_row and self._sealing.look(db):
            log.info("no process of the version before was seen for a while: its way to seal is left")

    def left_behind(self, owner: str) -> str | None:
        """Several processes may have it open; what a dead one had in hand comes free with its leases."""
        return None

    # reading

    @contextlib.contextmanager
    def reader(self) -> Iterator[PostgresReads]:
        if self._closed:
            raise StoreClosed
        try:
            db = self._begin_reading()
        except (psycopg.Error, PoolTimeout) as error:
            raise classify(error, self._place)[1] from error
        failed: BaseException | None = None
        try:
            yield PostgresReads(PostgresReadConnection(db))
            db.execute("COMMIT")
        except psycopg.Error as error:
            failed = error
            raise classify(error, self._place)[1] from error
        except BaseException as error:
            failed = error
            raise
        finally:
            self._give_back(db, failed)

    def _begin_reading(self) -> psycopg.Connection:
        """A connection may have been lost since it was last used."""
        for _ in range(WRITERS + READERS):
            db = self._pool.getconn()
            try:
                db.execute(BEGIN_READING)
            except psycopg.OperationalError as error:
                self._give_back(db, error)
            else:
                return db
        raise StoreFailed(path=self._place, reason="the server closes every connection")

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._news.close()
        if self._teller is not None:
            self._teller.close()
        if self._listener is not None:
            self._listener.is_closed.set()
            with contextlib.suppress(psycopg.Error), self._pool.connection(timeout=1) as db:
                db.execute(NOTIFY, (self._channel, self._write_news({})))
            self._listener.join()
        self._pool.close()


def name_place(url: str) -> str:
    """The address without a password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise StoreFailed(path="postgresql://…", reason=f"its address cannot be read ({error})") from None
    host, port = parts.get("host") or "localhost", parts.get("port") or 5432
    return f"postgresql://{host}:{port}/{parts.get('dbname') or parts.get('user') or ''}"


def name_sessions(url: str, name: str) -> str:
    """To the server, with whatever the address calls them: one name for a process, so that what it holds up
    when it stands still is known."""
    given = str(conninfo_to_dict(url).get("application_name") or "postroom")
    return f"{given[:40]} {NAME}{name[:12]}"
