"""The tables of a MariaDB store as they are moved. A lock that every transaction wants holds a source
still."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pymysql
from pymysql.cursors import SSCursor

from postroom.stores.mariadb.address import read_address
from postroom.stores.mariadb.connection import MariadbReadConnection, render, render_many, run
from postroom.stores.mariadb.errors import classify
from postroom.stores.mariadb.migrate import migrate
from postroom.stores.mariadb.pool import close_all
from postroom.stores.mariadb.transaction import LOCK_VERSION
from postroom.stores.sql.transfer import (
    MARK,
    TableRow,
    clear_rows,
    count_rows,
    insert_row,
    read_last_key,
    read_rows,
)


class MariadbTables:
    def __init__(self, url: str, *, is_source: bool) -> None:
        self._address = read_address(url)
        self.place = self._address.place
        self._open: list[pymysql.Connection[Any]] = []
        try:
            try:
                self._db = self._connect()
                migrate(self._db, self.place)
                self._reads = MariadbReadConnection(self._db)
                if is_source:
                    run(self._connect(), [b"START TRANSACTION", LOCK_VERSION.encode()])
            except BaseException:
                self.close()
                raise
        except pymysql.MySQLError as error:
            raise classify(error, self.place)[1] from error

    def _connect(self) -> "pymysql.Connection[Any]":
        db = self._address.connect()
        self._open.append(db)
        run(db, [b"SET SESSION idle_transaction_timeout = 0, net_write_timeout = 3600"])
        return db

    def columns(self, table: str) -> list[str]:
        rows = self._reads.fetch(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE()"
            " AND table_name = ? AND is_generated = 'NEVER' ORDER BY ordinal_position",
            (table,),
        )
        return [name for (name,) in rows]

    def count(self, table: str) -> int:
        return self._one(count_rows(table))

    def _one(self, sql: str) -> int:
        return self._reads.fetch(sql)[0][0] or 0

    def read(self, table: str, columns: Sequence[str], after: TableRow | None) -> Iterator[TableRow]:
        """On a connection of its own: rows come as they are asked for, and writes go beside."""
        sql = read_rows(table, columns, "?" * len(after or ()))
        with contextlib.closing(self._address.connect()) as db, db.cursor(SSCursor) as cursor:
            cursor.execute(render(db, sql, after or ()))  # type: ignore[arg-type] - bytes go as they are
            yield from cursor

    def last_key(self, table: str) -> TableRow | None:
        rows = self._reads.fetch(read_last_key(table))
        return rows[0] if rows else None

    def write(self, table: str, columns: Sequence[str], rows: Sequence[TableRow]) -> None:
        sql = f"INSERT IGNORE {insert_row(table, columns, '?' * len(columns))}"
        run(self._db, [b"START TRANSACTION"])
        for statement in render_many(self._db, sql, rows):
            run(self._db, [statement])
        run(self._db, [b"COMMIT"])

    def clear(self, table: str) -> None:
        run(self._db, [clear_rows(table).encode()])

    def mark(self) -> str | None:
        rows = self._reads.fetch("SELECT value FROM meta WHERE name = ?", (MARK,))
        return rows[0][0] if rows else None

    def set_mark(self, mark: str | None) -> None:
        sql = "DELETE FROM meta WHERE name = ?" if mark is None else "REPLACE INTO meta VALUES (?, ?)"
        run(self._db, [render(self._db, sql, (MARK,) if mark is None else (MARK, mark))])

    def last_number(self) -> int:
        return self._one("SELECT next_not_cached_value - 1 FROM message_numbers")

    def finish(self, last_number: int) -> None:
        highest = {"message_numbers": last_number, "record_numbers": self._one("SELECT max(id) FROM records")}
        for name, number in highest.items():
            if number:
                self._reads.fetch(f"SELECT SETVAL({name}, ?)", (number,))
        version = "INSERT INTO figures VALUES (0, 0, 'version', 1, NULL, NULL, NULL)"
        run(self._db, [f"{version} ON DUPLICATE KEY UPDATE n = n + 1".encode()])

    def classify(self, error: Exception) -> Exception:
        return classify(error, self.place)[1]

    def close(self) -> None:
        close_all(self._open)
