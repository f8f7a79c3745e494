"""Ranges of a store on a database server as Arrow batches, which executors ask the server for themselves.

A range is read in small pieces, each in a transaction of its own, so that nothing is kept from being vacuumed
or pruned while the pipeline works.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from postroom.kernel import jsontext
from postroom.pipeline.sources.sqlite import SqliteSource, Wanted
from postroom.stores.addresses import MARIADB, POSTGRES, needing_extra

ROWS_AT_ONCE = 5_000
# Each statement begins with a row that tells the types: a number, a text or bytes.
_COLUMN = re.compile(r"(0|''|x'') AS (\w+)")
_TYPES = {"0": pa.int64(), "''": pa.string(), "x''": pa.binary()}
_PACKED = ("type", "tenant", "scope", "queue", "actor")
# On a server no row tells how far messages are numbered.
_LAST = "coalesce((SELECT max(seq) FROM {}), 0)"
_MESSAGES = f"greatest({_LAST.format('messages')}, {_LAST.format('archive')})"
_CHAIN = f"FROM (SELECT name, seq, hash, {_MESSAGES} AS message_seq FROM %s) chain"  # noqa: S608 - ours
_MARIADB_CHAIN = "(SELECT name, n AS seq, hash FROM figures WHERE queue_id = 0 AND subscription_id = 0) ends"

_BY_MESSAGE = "CROSS JOIN messages m ON m.id = l.message_id CROSS JOIN contents c ON c.seq = m.seq"
_BY_CONTENT = "JOIN contents c ON c.id = l.message_id JOIN messages m ON m.seq = c.seq"
_ONE_MESSAGE = " FROM messages WHERE seq = (SELECT c.seq FROM contents c WHERE c.id = ?)"

Rows = list[tuple[Any, ...]]
Fetch = Callable[[str, tuple[Any, ...]], Rows]


class FetchedRows:
    """As the cursor of a file: what the server answered, to be gone through once."""

    def __init__(self, rows: Rows) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._rows

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(self._rows, None)

    def fetchall(self) -> Rows:
        return list(self._rows)


class ServerView:
    """One view of a server's store, asked in the words of a file's."""

    def __init__(self, fetch: Fetch, translate: Callable[[str], str]) -> None:
        self._fetch = fetch
        self._translate = translate

    def execute(self, sql: str, bindings: tuple[Any, ...] = ()) -> FetchedRows:
        if sql == "BEGIN":
            return FetchedRows([])  # it has begun
        return FetchedRows(self._fetch(self._translate(sql), bindings))


class ServerSource(SqliteSource, frozen=True, kw_only=True):
    """`path` is the address without its password, for people; `url` is what executors connect to."""

    url: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"

    def ledger(self, after: int, up_to: int, wanted: Sequence[Wanted] = ()) -> Iterator[pa.RecordBatch]:
        for low, high in _pieces(after, up_to):
            yield from SqliteSource.ledger(self, low, high, wanted)

    def packed(self, after: int, up_to: int) -> Iterator[pa.RecordBatch]:
        for batch in self.ledger(after, up_to):
            columns = [batch.column(name).to_pylist() for name in _PACKED]
            repeated = [jsontext.text(kind) for kind in zip(*columns, strict=True)]
            kept = {name: batch.column(name) for name in batch.schema.names if name not in _PACKED}
            names = (
                "seq",
                "time",
                "repeated",
                "message_id",
                "correlation_id",
                "causation_id",
                "data",
                "hash",
            )
            kept["repeated"] = pa.array(repeated, pa.string())
            yield pa.RecordBatch.from_pydict({name: kept[name] for name in names})

    def records(self, after: int, up_to: int, wanted: Sequence[Wanted] = ()) -> Iterator[pa.RecordBatch]:
        for low, high in _pieces(after, up_to):
            yield from SqliteSource.records(self, low, high, wanted)

    def ended(self, after: int, up_to: int) -> Iterator[pa.RecordBatch]:
        for low, high in _pieces(after, up_to):
            yield from SqliteSource.ended(self, low, high)

    def rows(self, after: int, up_to: int, wanted: Sequence[Wanted] = ()) -> Iterator[pa.RecordBatch]:
        for low, high in _pieces(after, up_to):
            yield from SqliteSource.rows(self, low, high, wanted)

    def _batches(self, sql: str, bindings: tuple[int | str, ...]) -> Iterator[pa.RecordBatch]:
        types, _, rest = sql.partition("UNION ALL")
        schema = pa.schema([(name, _TYPES[kind]) for kind, name in _COLUMN.findall(types)])
        with self._look() as db:
            rows = db.execute(rest, bindings).fetchall()
        # A server gives them in any order: by the event that ended them, and by their own number.
        by_event = schema.get_field_index("ended_seq")
        rows.sort(key=lambda row: (row[by_event] if by_event >= 0 else 0, row[0]))
        columns = list(zip(*rows, strict=True)) or [()] * len(schema)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


class PostgresSource(ServerSource, frozen=True, kw_only=True):
    @contextlib.contextmanager
    def _look(self) -> Iterator[Any]:
        with needing_extra("postgres"):
            import psycopg

            from postroom.stores.postgres.connection import PostgresReadConnection, set_up
            from postroom.stores.postgres.errors import classify
            from postroom.stores.postgres.store import CONNECT_S
        try:
            with psycopg.connect(self.url, connect_timeout=CONNECT_S, autocommit=True) as db:
                set_up(db)
                db.execute("SET default_transaction_isolation = 'repeatable read'")
                with db.transaction():
                    yield ServerView(PostgresReadConnection(db).fetch, _say_to_postgres)
        except psycopg.Error as error:
            raise classify(error, self.path)[1] from error

    def _find_words(self, column: str) -> str:
        return f"encode({column}, 'escape') ILIKE ? ESCAPE '!'"

    def _write_pattern(self, text: str) -> str:
        """As `encode` writes bytes: what is not ASCII in octal, and backslashes twice."""
        return "".join(
            chr(byte) if byte < 128 and byte != 92 else "\\\\" if byte == 92 else f"\\{byte:03o}"
            for byte in text.encode()
        )


class MariadbSource(ServerSource, frozen=True, kw_only=True):
    @contextlib.contextmanager
    def _look(self) -> Iterator[Any]:
        with needing_extra("mariadb"):
            import pymysql

            from postroom.stores.mariadb.address import read_address
            from postroom.stores.mariadb.connection import MariadbReadConnection, run
            from postroom.stores.mariadb.errors import classify
        try:
            with contextlib.closing(read_address(self.url).connect()) as db:
                run(db, [b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"])
                run(db, [b"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"])
                yield ServerView(MariadbReadConnection(db).fetch, _say_to_mariadb)
        except pymysql.MySQLError as error:
            raise classify(error, self.path)[1] from error

    def _find_words(self, column: str) -> str:
        return f"LOWER(CONVERT({column} USING utf8mb4)) LIKE LOWER(?) ESCAPE '!'"


def open_server(url: str) -> ServerSource | None:
    """The source behind the address of a server; None for other addresses."""
    if url.startswith(POSTGRES):
        with needing_extra("postgres"):
            from postroom.stores.postgres.store import name_place
        return PostgresSource(name_place(url), url=url)
    if url.startswith(MARIADB):
        with needing_extra("mariadb"):
            from postroom.stores.mariadb.address import read_address
        return MariadbSource(read_address(url).place, url=url)
    return None


def _pieces(after: int, up_to: int) -> list[tuple[int, int]]:
    return [(low, min(low + ROWS_AT_ONCE, up_to)) for low in range(after, up_to, ROWS_AT_ONCE)]


def _say(sql: str) -> str:
    return re.sub(r"CAST\((\w\.body) AS TEXT\) AS body", r"\1 AS body", sql)


def _say_to_postgres(sql: str) -> str:
    sql = _say(sql).replace("instr(", "strpos(").replace("FROM chain", _CHAIN % "chain ends")
    # Live messages are found by their ids through their contents.
    sql = sql.replace(_BY_MESSAGE, _BY_CONTENT).replace(" FROM messages WHERE id = ?", _ONE_MESSAGE)
    if "FROM messages m " in sql:
        sql = sql.replace("m.id = ?", "c.id = ?")
    # A jsonb cannot hold the character NUL.
    state = r"(replace(l.data, '\u0000', '')::jsonb ->> 'state')"
    return sql.replace("json_extract(l.data, '$.state')", state)


def _say_to_mariadb(sql: str) -> str:
    return _say(sql).replace("FROM chain", _CHAIN % _MARIADB_CHAIN).replace("json_extract(", "JSON_VALUE(")
