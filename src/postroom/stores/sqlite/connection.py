"""Connections as the shared SQL code uses them. A writer's statements wait for each other to save calls.

`BEGIN` goes with the first statement and `COMMIT` with the last ones, in one call of the driver; a
transaction that needed no statement costs nothing.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import apsw

from postroom.stores.sql.dialect import Bindings

BEGIN = "BEGIN IMMEDIATE"


class ReadConnection:
    """Only reads, in a snapshot of its own."""

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db

    def fetch(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        return self.db.execute(sql, bindings).fetchall()

    def cursor(self, sql: str, bindings: Bindings = ()) -> Iterator[tuple[Any, ...]]:
        """Rows as they are found; what nobody asks for any more is not looked for."""
        return self.db.execute(sql, bindings)


class WriteConnection:
    """One transaction of the writer, from its first statement to its commit."""

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self._waiting: list[str] = [BEGIN]
        self._bound: list[Any] = []
        self._has_begun = False
        self._lost: BaseException | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is anything to commit or to undo."""
        return self._has_begun or len(self._waiting) > 1

    def _execute(self, sql: str, bindings: Bindings) -> apsw.Cursor:
        """With whatever waits, which goes first."""
        if self._lost is not None:
            raise self._lost
        try:
            self._has_begun = True
            if not self._waiting:
                return self.db.execute(sql, bindings)
            whole = ";".join((*self._waiting, sql))
            bound = (*self._bound, *bindings)
            self._waiting, self._bound = [], []
            return self.db.execute(whole, bound)
        except apsw.Error as error:
            self._lose(error)
            raise

    def _lose(self, error: BaseException) -> None:
        """SQLite itself undoes a transaction when there is no room: what came after would stand alone."""
        if self._has_begun and not self.db.in_transaction:
            self._lost = error

    def fetch(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        return self._execute(sql, bindings).fetchall()

    def cursor(self, sql: str, bindings: Bindings = ()) -> Iterator[tuple[Any, ...]]:
        return self._execute(sql, bindings)

    def write(self, sql: str, bindings: Bindings = ()) -> None:
        self._waiting.append(sql)
        self._bound += bindings

    def write_many(self, sql: str, rows: Iterable[Bindings]) -> None:
        if isinstance(rows, list) and len(rows) == 1:
            self.write(sql, rows[0])
            return
        self.send()
        try:
            self.db.executemany(sql, rows)
        except apsw.Error as error:
            self._lose(error)
            raise

    def change(self, sql: str, bindings: Bindings = ()) -> int:
        self._execute(sql, bindings)
        return self.db.changes()

    def send(self) -> None:
        """Whatever waits, now."""
        if self._lost is not None:
            raise self._lost
        if self._waiting:
            *others, last = self._waiting
            self._waiting = others
            bound, self._bound = self._bound, []
            self._execute(last, bound)

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        self.write("SAVEPOINT step")
        waiting, bound = len(self._waiting), len(self._bound)
        sent = self._waiting
        try:
            yield
        except BaseException:
            if self._lost is None:
                if self._waiting is sent:
                    # Nothing of it was sent, not even its beginning.
                    del self._waiting[waiting - 1 :], self._bound[bound:]
                else:
                    self._waiting, self._bound = [], []
                    self._execute("ROLLBACK TO step;RELEASE step", ())
            raise
        self.write("RELEASE step")

    def commit(self) -> None:
        if self.is_open:
            self._execute("COMMIT", ())

    def rollback(self) -> None:
        self._waiting, self._bound = [], []
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")
