"""How a database says what the others say otherwise, and what the shared code asks of its driver."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

Bindings = Sequence[Any]
Statements = dict[str, str]


class Dialect(Protocol):
    """Parameters are written `?`; a driver that writes them otherwise translates whole statements."""

    lock: str
    """Ends a statement whose rows a transaction locks."""

    def among(self, column: str, kind: str) -> str:
        """A condition: the column's value is in the list bound here. `kind` is `text` or `integer`."""
        ...

    def bind_list(self, values: Iterable[Any]) -> Any:
        """A list as `among` takes it."""
        ...

    def upsert(self, table: str, key: Sequence[str], columns: Sequence[str]) -> str:
        """Insert a row, or write these columns of the one with this key."""
        ...

    def labelled(self) -> str:
        """A condition on labels, a JSON object `c.labels`: it has this name with this value."""
        ...

    def bind_label(self, name: str, value: Any) -> Bindings: ...


class ReadDatabase(Protocol):
    """One connection, as reads use it."""

    def fetch(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]: ...


class WriteDatabase(ReadDatabase, Protocol):
    """And as transactions use it."""

    def write(self, sql: str, bindings: Bindings = ()) -> None:
        """It may be sent later, but before the next `fetch`, `write_many`, `change` or commit."""
        ...

    def write_many(self, sql: str, rows: Iterable[Bindings]) -> None: ...
    def change(self, sql: str, bindings: Bindings = ()) -> int:
        """At once; how many rows were changed."""
        ...


class SqlReads:
    """What every part of the reads stands on."""

    def __init__(self, db: ReadDatabase, sql: Statements, dialect: Dialect) -> None:
        self._db = db
        self._sql = sql
        self._dialect = dialect


class SqlWrites(SqlReads):
    """What every part of a transaction stands on."""

    def __init__(self, db: WriteDatabase, sql: Statements, dialect: Dialect) -> None:
        super().__init__(db, sql, dialect)
        self._out = db

    def _renew(self) -> None:
        """What processes remember is out of date with this commit."""
        raise NotImplementedError
