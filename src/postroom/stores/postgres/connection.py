"""Connections as the shared SQL code uses them. What a writer sends waits for the next question or the
commit, so that a transaction costs few round trips however many statements it has.
"""

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg import RawCursor
from psycopg.conninfo import conninfo_to_dict

from postroom.stores.postgres.arrays import ArrayLiteral, ArrayLiteralDumper, BytesArray, BytesArrayDumper
from postroom.stores.postgres.characters import TextColumns, TextDumper, TextLoader
from postroom.stores.postgres.dialect import translate
from postroom.stores.sql.contention import MESSAGE_OVERTAKEN, Overtaken
from postroom.stores.sql.dialect import Bindings

CONNECT_S = 10
TEXT = 25
# A server that is cut off is given up after 11 seconds, unless the address says otherwise.
_ALIVE = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 11_000}
# The server gives a client up that is cut off, as soon; on sockets of one machine this does nothing.
IDLE_S = 20
_SESSION = f"""
SET idle_in_transaction_session_timeout = '{IDLE_S}s';
SET lock_timeout = '30s';
SET tcp_keepalives_idle = 5;
SET tcp_keepalives_interval = 2;
SET tcp_keepalives_count = 3;
SET tcp_user_timeout = '11s';
"""
# The same for one transaction, where a pool gives each to another session.
_TRANSACTION = f"""
SELECT set_config('idle_in_transaction_session_timeout', '{IDLE_S}s', true),
    set_config('lock_timeout', '30s', true)
"""
# Of one transaction that was ended before although its process worked.
_MORE_TIME = """
SELECT set_config('application_name', $1, true), set_config('idle_in_transaction_session_timeout', $2, true)
"""
# Looks whether the client is still there also while it waits for a lock.
_SINCE_14 = "SET client_connection_check_interval = '5s'"
_HAS_CHECK = 140000


def connect_options(url: str) -> dict[str, Any]:
    """Of every connection, beside its address."""
    given = conninfo_to_dict(url)
    alive = {name: value for name, value in _ALIVE.items() if name not in given}
    return {"autocommit": True, "connect_timeout": CONNECT_S, **alive}


def is_pooled(db: psycopg.Connection) -> bool:
    """Whether a pool (PgBouncer) stands before the server. It may give each transaction to another session,
    so nothing of a session's own may be used: settings, prepared statements, notifications."""
    [(pid,)] = db.execute("SELECT pg_backend_pid()").fetchall()
    return pid != db.info.backend_pid


def connect(url: str) -> psycopg.Connection:
    db = psycopg.connect(url, **connect_options(url))
    set_up(db)
    return db


def adapt(db: psycopg.Connection) -> None:
    """What every connection needs before its first use."""
    db.adapters.register_dumper(str, TextDumper)
    db.adapters.register_dumper(ArrayLiteral, ArrayLiteralDumper)
    db.adapters.register_dumper(BytesArray, BytesArrayDumper)
    db.adapters.register_loader("text", TextLoader)
    db.cursor_factory = RawCursor


def set_up(db: psycopg.Connection) -> None:
    """What every session needs besides."""
    adapt(db)
    db.execute(_SESSION)  # type: ignore[arg-type]
    if db.info.server_version >= _HAS_CHECK:
        # Not every system that the server may run on can do it.
        with contextlib.suppress(psycopg.errors.InvalidParameterValue):
            db.execute(_SINCE_14)


# By statement; those of filters are put together, so there is a bound.
_text_columns: dict[str, TextColumns] = {}
_MOST_STATEMENTS = 2000


def read_rows(sql: str, cursor: psycopg.Cursor[Any]) -> list[tuple[Any, ...]]:
    """The whole answer to a question that was asked for in binary."""
    rows = cursor.fetchall()
    if not rows:
        return rows
    columns = _text_columns.get(sql)
    if columns is None:
        if len(_text_columns) >= _MOST_STATEMENTS:
            _text_columns.clear()
        types = cursor.pgresult
        assert types is not None, "an answer has a result"
        places = [i for i in range(types.nfields) if types.ftype(i) == TEXT]
        columns = _text_columns[sql] = TextColumns(places)
    return columns.restore(rows)


class PostgresReadConnection:
    """Only reads, in a snapshot of its own."""

    def __init__(self, db: psycopg.Connection) -> None:
        self.db = db

    def fetch(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        return read_rows(sql, self.db.execute(translate(sql), bindings, binary=True))  # type: ignore[arg-type]


class PostgresWriteConnection:
    """One transaction."""

    def __init__(self, db: psycopg.Connection, *, is_pooled: bool = False) -> None:
        self.db = db
        self._is_pooled = is_pooled
        self.writes = 0
        """How many statements were to change something."""
        self._waiting: list[tuple[str, Sequence[Bindings], int | None]] = []
        self._heard_at = 0.0

    @property
    def silence_s(self) -> float:
        """For how long the server has not heard of it."""
        return time.monotonic() - self._heard_at

    def begin(self, lock: str, first: str, more_time: tuple[str, int] | None = None) -> list[tuple[Any, ...]]:
        """Begin, wait for a lock, and ask the first question, which sees what was done until it was had.
        With `more_time` it goes by another name, and the server waits for so many seconds."""
        with self.db.pipeline():
            self.db.execute("BEGIN")
            if self._is_pooled:
                self.db.execute(_TRANSACTION)  # type: ignore[arg-type]
            if more_time is not None:
                name, seconds = more_time
                self.db.execute(_MORE_TIME, (name, f"{max(seconds, IDLE_S)}s"))
            self.db.execute(translate(lock))  # type: ignore[arg-type]
            cursor = self.db.execute(translate(first))  # type: ignore[arg-type]
        self._heard_at = time.monotonic()
        return cursor.fetchall()

    def _execute(self, sql: str, bindings: Bindings) -> psycopg.Cursor[Any]:
        """With whatever waits, which goes first."""
        if not self._waiting:
            cursor = self.db.execute(translate(sql), bindings, binary=True)  # type: ignore[arg-type]
            self._heard_at = time.monotonic()
            return cursor
        with self.db.pipeline():
            expected = self._send_waiting()
            cursor = self.db.execute(translate(sql), bindings, binary=True)  # type: ignore[arg-type]
        self._heard_at = time.monotonic()
        if any(each.rowcount != count for each, count in expected):
            raise Overtaken(MESSAGE_OVERTAKEN)
        return cursor

    def _send_waiting(self) -> list[tuple[psycopg.Cursor[Any], int]]:
        """Those that must change so many rows."""
        waiting, self._waiting = self._waiting, []
        expected = []
        for sql, rows, count in waiting:
            if len(rows) == 1:
                cursor = self.db.execute(translate(sql), rows[0])  # type: ignore[arg-type]
                if count is not None:
                    expected.append((cursor, count))
            else:
                self.db.cursor().executemany(translate(sql), rows)  # type: ignore[arg-type]
        return expected

    def fetch(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        return read_rows(sql, self._execute(sql, bindings))

    def write(self, sql: str, bindings: Bindings = (), *, expect: int | None = None) -> None:
        self.writes += 1
        self._waiting.append((sql, (bindings,), expect))

    def write_many(self, sql: str, rows: Iterable[Bindings]) -> None:
        self.writes += 1
        listed = list(rows)
        if listed:
            self._waiting.append((sql, listed, None))

    def change(self, sql: str, bindings: Bindings = ()) -> int:
        self.writes += 1
        return self._execute(sql, bindings).rowcount

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        self._waiting.append(("SAVEPOINT step", ((),), None))
        waiting, before = self._waiting, len(self._waiting)
        try:
            yield
        except BaseException:
            if self._waiting is waiting:
                # Nothing of it was sent, not even its beginning.
                del waiting[before - 1 :]
            elif not self.db.broken:
                self._waiting = []
                self.db.execute("ROLLBACK TO step")
                self.db.execute("RELEASE step")
            raise
        self._waiting.append(("RELEASE step", ((),), None))

    def commit(self) -> None:
        self._execute("COMMIT", ())

    def rollback(self) -> None:
        self._waiting = []
        if not self.db.broken:
            self.db.execute("ROLLBACK")
