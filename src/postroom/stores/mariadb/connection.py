"""Connections as the shared SQL code uses them. What a writer sends waits for the next question or the
commit, and goes with it in one packet: a transaction costs few round trips however many statements it has.
"""

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pymysql

from postroom.stores.mariadb.dialect import split
from postroom.stores.mariadb.errors import PacketTooLarge
from postroom.stores.sql.contention import MESSAGE_OVERTAKEN, Overtaken
from postroom.stores.sql.dialect import Bindings

# Rows of one INSERT, in bytes: a long statement costs the server more than its parts.
INSERT_BYTES = 512 * 1024
_END_WHEN_STILL = b"SET SESSION idle_transaction_timeout = %d"
_VALUES = " VALUES ("
Rows = list[tuple[Any, ...]]


class Pairs(list[tuple[Any, ...]]):
    """Rows to be written out as such, not as a list."""


class MariadbReadConnection:
    """Only reads, in a snapshot of its own."""

    def __init__(self, db: "pymysql.Connection[Any]") -> None:
        self.db = db

    def fetch(self, sql: str, bindings: Bindings = ()) -> Rows:
        return run(self.db, [render(self.db, sql, bindings)])[0]


class MariadbWriteConnection:
    """One transaction."""

    def __init__(self, db: "pymysql.Connection[Any]", most_bytes: int) -> None:
        self.db = db
        self.writes = 0
        """How many statements were to change something."""
        self._most_bytes = most_bytes
        self._waiting: list[bytes] = []
        self._expected: list[tuple[int, int]] = []
        """Of those that wait, by their place: how many rows they must find."""
        self._depth = 0
        self._heard_at = 0.0
        self.silence_s = 0.0
        """How long the server had not heard of it before the last packet."""

    def begin(self, lock: str, first: str, still_s: int) -> Rows:
        """Begin, wait for a lock, and ask the first question, which sees what was done until it was had. The
        server ends the session when it does not hear of it for so many seconds."""
        statements = [_END_WHEN_STILL % still_s, b"START TRANSACTION", lock.encode(), render(self.db, first)]
        found = run(self.db, statements)[0]
        self._heard_at = time.monotonic()
        return found

    def _execute(self, *statements: bytes) -> tuple[Rows, list[int]]:
        """With whatever waits, which goes first, in as few packets as the server takes."""
        self.silence_s = time.monotonic() - self._heard_at
        waiting, self._waiting = [*self._waiting, *statements], []
        expected, self._expected = self._expected, []
        packet: list[bytes] = []
        size = 0
        changed: list[int] = []
        for statement in waiting:
            if len(statement) >= self._most_bytes:
                raise PacketTooLarge(
                    f"a row of {len(statement)} bytes is larger than the server's max_allowed_packet"
                )
            if packet and size + len(statement) >= self._most_bytes:
                changed += run(self.db, packet)[1]
                packet, size = [], 0
            packet.append(statement)
            size += len(statement) + 1
        rows, counts = run(self.db, packet)
        self._heard_at = time.monotonic()
        changed += counts
        if any(changed[place] != count for place, count in expected):
            raise Overtaken(MESSAGE_OVERTAKEN)
        return rows, changed[-len(statements) :]

    def fetch(self, sql: str, bindings: Bindings = ()) -> Rows:
        return self._execute(render(self.db, sql, bindings))[0]

    def write(self, sql: str, bindings: Bindings = (), *, expect: int | None = None) -> None:
        self.writes += 1
        if expect is not None:
            self._expected.append((len(self._waiting), expect))
        self._waiting.append(render(self.db, sql, bindings))

    def write_many(self, sql: str, rows: Iterable[Bindings]) -> None:
        self.writes += 1
        self._waiting += render_many(self.db, sql, rows)

    def change(self, sql: str, bindings: Bindings = ()) -> int:
        self.writes += 1
        return self._execute(render(self.db, sql, bindings))[1][-1]

    def change_each(self, statements: Sequence[tuple[str, Bindings]]) -> int:
        """At once; how many rows were found to be changed by all of them."""
        self.writes += 1
        return sum(self._execute(*(render(self.db, sql, bindings) for sql, bindings in statements))[1])

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        # Each depth has a name of its own: here a second savepoint of one name takes the first away.
        name = b"step_%d" % self._depth
        self._waiting.append(b"SAVEPOINT " + name)
        waiting, before = self._waiting, len(self._waiting)
        self._depth += 1
        try:
            yield
        except BaseException:
            if self._waiting is waiting:
                # Nothing of it was sent, not even its beginning.
                del waiting[before - 1 :]
                self._expected = [each for each in self._expected if each[0] < before]
            else:
                self._waiting, self._expected = [], []
                # After a deadlock there is nothing left to go back to: the whole transaction is gone.
                with contextlib.suppress(pymysql.MySQLError):
                    run(self.db, [b"ROLLBACK TO " + name, b"RELEASE SAVEPOINT " + name])
            raise
        finally:
            self._depth -= 1
        self._waiting.append(b"RELEASE SAVEPOINT " + name)

    def commit(self) -> None:
        self._execute(b"COMMIT")

    def rollback(self) -> None:
        self._waiting, self._expected = [], []
        run(self.db, [b"ROLLBACK"])


def run(db: "pymysql.Connection[Any]", statements: Sequence[bytes]) -> tuple[Rows, list[int]]:
    """In one packet. The rows of the last statement, and how many rows each one found."""
    changed = []
    with db.cursor() as cursor:
        changed.append(cursor.execute(b";".join(statements)))
        while cursor.nextset():
            changed.append(cursor.rowcount)
        return list(cursor.fetchall() or ()), changed


def render(db: "pymysql.Connection[Any]", sql: str, bindings: Bindings = ()) -> bytes:
    return _fill(db, split(sql), bindings).encode("utf-8", "surrogateescape")


def render_many(db: "pymysql.Connection[Any]", sql: str, rows: Iterable[Bindings]) -> list[bytes]:
    """An INSERT takes many rows; other statements go one after the other."""
    if _VALUES not in sql:
        return [render(db, sql, bindings) for bindings in rows]
    head, _, rest = sql.partition(_VALUES)
    row, _, tail = rest.partition(")")
    start, end = split(f"{head} VALUES ")[0].encode(), split(tail)[0].encode()
    pieces = split(f"({row})")
    found: list[bytes] = []
    parts: list[bytes] = []
    size = 0
    for bindings in rows:
        part = _fill(db, pieces, bindings).encode("utf-8", "surrogateescape")
        if parts and size + len(part) > INSERT_BYTES:
            found.append(start + b",".join(parts) + end)
            parts, size = [], 0
        parts.append(part)
        size += len(part)
    if parts:
        found.append(start + b",".join(parts) + end)
    return found


def _fill(db: "pymysql.Connection[Any]", pieces: tuple[str, ...], bindings: Bindings) -> str:
    filled = [pieces[0]]
    for value, piece in zip(bindings, pieces[1:], strict=True):
        filled += (_write_out(db, value), piece)
    return "".join(filled)


def _write_out(db: "pymysql.Connection[Any]", value: Any) -> str:
    """A value as SQL, with everything in it escaped by the driver."""
    if value is None:
        return "NULL"
    if type(value) is int:
        return str(value)
    if isinstance(value, Pairs):
        return ", ".join(_write_out(db, list(pair)) for pair in value)
    if isinstance(value, list):
        return f"({', '.join([_write_out(db, each) for each in value]) or 'NULL'})"
    return str(db.escape(value))
