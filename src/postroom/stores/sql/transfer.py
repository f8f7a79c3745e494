"""A whole store into another one, table by table: every row as it is, so that ids, numbers and the ledger's
hashes stay. It may be cut off at any moment and run again; the target is no store before all was compared.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

import msgspec

from postroom.errors import StoreDiffers, StoreNotEmpty
from postroom.stores.sql.tables import BOUNDED_BY

AT_ONCE = 1000
# The row of `meta` that says whose copy a store is to become. Who finds it does not open the store.
MARK = "move"
# Each store has its own.
OWN_TABLES = frozenset({"meta"})
TABLES = tuple(name for name in BOUNDED_BY if name not in OWN_TABLES)
KEYS: dict[str, tuple[str, ...]] = {
    "scopes": ("id",),
    "queues": ("id",),
    "figures": ("queue_id", "subscription_id", "name"),
    "messages": ("seq",),
    "contents": ("seq",),
    "archive": ("seq",),
    "subscriptions": ("id",),
    "records": ("id",),
    "ledger": ("seq",),
    "accounts": ("tenant", "name"),
    "reservations": ("tenant", "holder", "account"),
    "settlements": ("tenant", "holder"),
    "holds": ("id",),
    "documents": ("tenant", "kind", "key"),
    "audit": ("seq",),
    "chunks": ("stream_id", "number"),
    "standing": ("message_id",),
    "standing_accounts": ("tenant", "name"),
}
# The next number of a message stands with the head on SQLite, and in a sequence elsewhere.
NUMBER = "message_seq"
FLAGS = frozenset({"system", "final", "gone", "allowed"})

TableRow = tuple[Any, ...]
Progress = Callable[[str, int, int], None]
"""Called with the name of a table, how many of its rows are done, and how many there are."""


class StoreTables(Protocol):
    """The tables of one store. Of a source they are held still: nobody writes while it is open."""

    place: str

    def columns(self, table: str) -> list[str]:
        """Those that are not computed."""
        ...

    def count(self, table: str) -> int: ...
    def read(self, table: str, columns: Sequence[str], after: TableRow | None) -> Iterator[TableRow]:
        """Rows in the order of the key, behind one."""
        ...

    def last_key(self, table: str) -> TableRow | None: ...
    def write(self, table: str, columns: Sequence[str], rows: Sequence[TableRow]) -> None:
        """In one commit; what is there already is left."""
        ...

    def clear(self, table: str) -> None: ...
    def mark(self) -> str | None: ...
    def set_mark(self, mark: str | None) -> None: ...
    def last_number(self) -> int:
        """The highest number that a message was given."""
        ...

    def finish(self, last_number: int) -> None:
        """Numbers go on behind what was written."""
        ...

    def classify(self, error: Exception) -> Exception:
        """An error of this store's library by its name; others as they are."""
        ...

    def close(self) -> None: ...


def count_rows(table: str) -> str:
    return f"SELECT count(*) FROM {table}"  # noqa: S608 - names of tables of ours, as in all of these


def clear_rows(table: str) -> str:
    return f"DELETE FROM {table}"  # noqa: S608


def read_rows(table: str, columns: Sequence[str], marks: Sequence[str]) -> str:
    """In the order of the key; behind one, where there are marks for its values."""
    key = ", ".join(KEYS[table])
    where = f"WHERE ({key}) > ({', '.join(marks)})" if marks else ""
    return f"SELECT {', '.join(columns)} FROM {table} {where} ORDER BY {key}"  # noqa: S608


def read_last_key(table: str) -> str:
    key = KEYS[table]
    descending = ", ".join(f"{name} DESC" for name in key)
    return f"SELECT {', '.join(key)} FROM {table} ORDER BY {descending} LIMIT 1"  # noqa: S608


def insert_row(table: str, columns: Sequence[str], marks: Sequence[str]) -> str:
    return f"INTO {table} ({', '.join(columns)}) VALUES ({', '.join(marks)})"


class MovedTable(msgspec.Struct, frozen=True):
    name: str
    rows: int


def transfer(source: StoreTables, target: StoreTables, progress: Progress) -> list[MovedTable]:
    mark = target.mark()
    if mark is None and any(target.count(table) for table in TABLES if table != "figures"):
        raise StoreNotEmpty(path=target.place)
    if mark is not None and mark != source.place:
        raise StoreNotEmpty(path=target.place)
    target.set_mark(source.place)
    moved = []
    for table in TABLES:
        columns = _columns(source, target, table)
        # The chain and the counts change with every commit, so they are never half done.
        if table == "figures":
            target.clear(table)
        total = _copy(source, target, table, columns, progress)
        if _digest(source, table, columns) != _digest(target, table, columns):
            # It was begun when the source was another.
            target.clear(table)
            total = _copy(source, target, table, columns, progress)
            if _digest(source, table, columns) != _digest(target, table, columns):
                raise StoreDiffers(path=target.place, table=table)
        moved.append(MovedTable(table, total))
    target.finish(source.last_number())
    target.set_mark(None)
    return moved


def _columns(source: StoreTables, target: StoreTables, table: str) -> list[str]:
    columns = source.columns(table)
    if set(columns) != set(target.columns(table)):
        raise StoreDiffers(path=target.place, table=table)
    return columns


def _copy(
    source: StoreTables, target: StoreTables, table: str, columns: Sequence[str], progress: Progress
) -> int:
    total, after = source.count(table), target.last_key(table)
    done = target.count(table)
    progress(table, done, total)
    found = source.read(table, columns, after)
    while rows := list(islice(found, AT_ONCE)):
        target.write(table, columns, rows)
        done += len(rows)
        progress(table, done, total)
    return total


def _digest(tables: StoreTables, table: str, columns: Sequence[str]) -> tuple[int, int]:
    """How many rows, and the sum of their hashes: the order in which a store gives them does not matter."""
    count = total = 0
    for row in _plain(tables.read(table, columns, None), table, columns):
        count += 1
        total += int.from_bytes(hashlib.sha256(msgspec.msgpack.encode(row)).digest())
    return count, total % 2**256


def _plain(rows: Iterable[TableRow], table: str, columns: Sequence[str]) -> Iterator[list[Any]]:
    """As every store means it, without what each has for itself."""
    own = {columns.index(NUMBER)} if table == "figures" else set()
    flags = {columns.index(name) for name in FLAGS & set(columns)}
    for row in rows:
        yield [int(value) if i in flags else value for i, value in enumerate(row) if i not in own]
