"""The tables of a PostgreSQL store as they are moved. A lock that every transaction wants holds a source
still."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg import RawServerCursor

from postroom.stores.postgres.connection import connect
from postroom.stores.postgres.dialect import WRITE_SQL
from postroom.stores.postgres.errors import classify
from postroom.stores.postgres.migrate import migrate
from postroom.stores.postgres.store import name_place
from postroom.stores.postgres.transaction import LOCK_VERSION
from postroom.stores.sql.transfer import (
    FLAGS,
    KEYS,
    MARK,
    TableRow,
    count_rows,
    insert_row,
    read_last_key,
    read_rows,
)

# What only this store has, and a trigger fills in.
OWN_COLUMNS = {"contents": ("id", "queue_id")}
COUNTED = ("scopes", "queues", "subscriptions", "holds", "audit")


class PostgresTables:
    def __init__(self, url: str, *, is_source: bool) -> None:
        self.place = name_place(url)
        self._still: psycopg.Connection | None = None
        try:
            self._db = self._connect(url)
            try:
                migrate(self._db, self.place)
                if is_source:
                    self._still = self._connect(url)
                    self._still.execute("BEGIN")
                    self._still.execute(LOCK_VERSION.encode())
                    # Other stores know counts and head by their rows only.
                    with self._db.transaction():
                        for name in ("fold_counts", "settle_head"):
                            self._db.execute(WRITE_SQL[name].encode())
            except BaseException:
                self.close()
                raise
        except psycopg.Error as error:
            raise classify(error, self.place)[1] from error

    def _connect(self, url: str) -> psycopg.Connection:
        db = connect(url)
        db.execute("SET idle_in_transaction_session_timeout = 0")
        return db

    def columns(self, table: str) -> list[str]:
        rows = self._db.execute(
            "SELECT column_name::text FROM information_schema.columns WHERE table_schema = current_schema()"
            " AND table_name = $1 AND is_generated = 'NEVER' ORDER BY ordinal_position",
            (table,),
        )
        return [name for (name,) in rows if name not in OWN_COLUMNS.get(table, ())]

    def count(self, table: str) -> int:
        return self._one(count_rows(table))

    def _one(self, sql: str) -> int:
        [(found,)] = self._db.execute(sql.encode()).fetchall()
        return found or 0

    def read(self, table: str, columns: Sequence[str], after: TableRow | None) -> Iterator[TableRow]:
        sql = read_rows(table, columns, _marks(after or ()))
        with self._db.transaction(), contextlib.closing(RawServerCursor(self._db, "moving")) as cursor:
            cursor.itersize = 2000
            cursor.execute(sql.encode(), after or ())
            yield from cursor

    def last_key(self, table: str) -> TableRow | None:
        return self._db.execute(read_last_key(table).encode()).fetchone()

    def write(self, table: str, columns: Sequence[str], rows: Sequence[TableRow]) -> None:
        flags = [i for i, name in enumerate(columns) if name in FLAGS]
        sql = f"INSERT {insert_row(table, columns, _marks(columns))} ON CONFLICT DO NOTHING"
        with self._db.transaction():
            self._db.cursor().executemany(sql.encode(), [_with_flags(row, flags) for row in rows])

    def clear(self, table: str) -> None:
        self._db.execute(f"TRUNCATE {table}".encode())

    def mark(self) -> str | None:
        row = self._db.execute("SELECT value FROM meta WHERE name = $1", (MARK,)).fetchone()
        return None if row is None else row[0]

    def set_mark(self, mark: str | None) -> None:
        self._db.execute("DELETE FROM meta WHERE name = $1", (MARK,))
        if mark is not None:
            self._db.execute("INSERT INTO meta VALUES ($1, $2)", (MARK, mark))

    def last_number(self) -> int:
        return self._one("SELECT last_value FROM message_numbers WHERE is_called UNION ALL SELECT 0 LIMIT 1")

    def finish(self, last_number: int) -> None:
        highest = {"message_numbers": last_number, "record_numbers": self._one("SELECT max(id) FROM records")}
        for name, number in highest.items():
            self._db.execute("SELECT setval($1::regclass, greatest($2, 1), $2 > 0)", (name, number))
        for table in COUNTED:
            [column] = KEYS[table]
            highest_id = self._one(f"SELECT max({column}) FROM {table}")  # noqa: S608 - names of ours
            sql = "SELECT setval(pg_get_serial_sequence($1, $2), greatest($3, 1), $3 > 0)"
            self._db.execute(sql, (table, column, highest_id))
        self._db.execute(
            "INSERT INTO figures VALUES (0, 0, 'version', 1, NULL, NULL, NULL)"
            " ON CONFLICT (queue_id, subscription_id, name) DO UPDATE SET n = figures.n + 1"
        )

    def classify(self, error: Exception) -> Exception:
        return classify(error, self.place)[1]

    def close(self) -> None:
        for db in (self._still, self._db):
            if db is not None:
                db.close()


def _marks(values: Sequence[Any]) -> list[str]:
    return [f"${number}" for number, _ in enumerate(values, 1)]


def _with_flags(row: TableRow, flags: Sequence[int]) -> TableRow:
    values = list(row)
    for i in flags:
        values[i] = bool(values[i])
    return tuple(values)
