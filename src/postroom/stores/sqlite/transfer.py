"""The tables of a SQLite store as they are moved; its owner's lock holds it still."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw

from postroom.errors import StoreHalfMoved, StoreMissing
from postroom.stores.sql.transfer import (
    FLAGS,
    MARK,
    TableRow,
    clear_rows,
    count_rows,
    insert_row,
    read_last_key,
    read_rows,
)
from postroom.stores.sqlite.errors import named, translated
from postroom.stores.sqlite.owner import OwnerLock
from postroom.stores.sqlite.store import SqliteStore


class SqliteTables:
    def __init__(self, path: Path, *, is_source: bool) -> None:
        self.place = f"sqlite:///{path}"
        if is_source and not path.is_file():
            raise StoreMissing(path=str(path))
        # Opened and closed once: made, checked, and brought to the newest schema.
        with contextlib.suppress(StoreHalfMoved):
            SqliteStore(path).close()
        self._lock = OwnerLock(path)
        try:
            with translated(str(path)):
                self._db = apsw.Connection(str(path))
                self._db.set_busy_timeout(5000)
        except BaseException:
            self._lock.release()
            raise

    def columns(self, table: str) -> list[str]:
        return [row[1] for row in self._db.execute(f"PRAGMA table_xinfo({table})") if not row[6]]

    def count(self, table: str) -> int:
        return self._one(count_rows(table))

    def _one(self, sql: str) -> int:
        [(found,)] = self._db.execute(sql).fetchall()
        return int(found or 0)

    def read(self, table: str, columns: Sequence[str], after: TableRow | None) -> Iterator[TableRow]:
        yield from self._db.execute(read_rows(table, columns, "?" * len(after or ())), after or ())

    def last_key(self, table: str) -> TableRow | None:
        rows = self._db.execute(read_last_key(table)).fetchall()
        return rows[0] if rows else None

    def write(self, table: str, columns: Sequence[str], rows: Sequence[TableRow]) -> None:
        flags = [i for i, name in enumerate(columns) if name in FLAGS]
        sql = f"INSERT OR IGNORE {insert_row(table, columns, '?' * len(columns))}"
        with self._db:
            self._db.executemany(sql, [_as_numbers(row, flags) for row in rows])

    def clear(self, table: str) -> None:
        self._db.execute(clear_rows(table))

    def mark(self) -> str | None:
        rows = self._db.execute("SELECT value FROM meta WHERE name = ?", (MARK,)).fetchall()
        return str(rows[0][0]) if rows else None

    def set_mark(self, mark: str | None) -> None:
        if mark is None:
            self._db.execute("DELETE FROM meta WHERE name = ?", (MARK,))
        else:
            self._db.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", (MARK, mark))

    def last_number(self) -> int:
        return self._one("SELECT message_seq FROM figures WHERE queue_id = 0 AND name = 'head'")

    def finish(self, last_number: int) -> None:
        self._db.execute("DELETE FROM figures WHERE queue_id = 0 AND name = 'version'")
        self._db.execute(
            "UPDATE figures SET message_seq = ? WHERE name IN ('head', 'anchor')", (last_number,)
        )

    def classify(self, error: Exception) -> Exception:
        return named(error, self.place) if isinstance(error, apsw.Error) else error

    def close(self) -> None:
        self._db.close()
        self._lock.release()


def _as_numbers(row: TableRow, flags: Sequence[int]) -> TableRow:
    if not flags:
        return row
    values = list(row)
    for i in flags:
        values[i] = int(values[i])
    return tuple(values)
