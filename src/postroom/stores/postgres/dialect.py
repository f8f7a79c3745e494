"""How PostgreSQL says what other databases say otherwise. Lists are bound as arrays."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, get_args, get_type_hints

import msgspec

from postroom.kernel import jsontext
from postroom.kernel.ledger import EventDraft
from postroom.kernel.rows import Content, Row
from postroom.stores.postgres.arrays import ArrayLiteral, BytesArray, pack_array
from postroom.stores.sql import statements
from postroom.stores.sql.dialect import Statements

HERE = "postroom.stores.postgres"
_TYPES = {"text": "text", "integer": "bigint"}
_COLUMNS = {str: "text", int: "bigint", bytes: "bytea", float: "double precision"}
# A jsonb cannot hold this character; both sides of a comparison have another in its place.
# What differs among messages and among events that are otherwise alike.
ROW_DIFFERS = ("id", "correlation_id", "seq")
CONTENT_DIFFERS = ("body",)
EVENT_DIFFERS = ("type", "message_id", "correlation_id", "data")
_NUL, _STANDS_FOR_NUL = "\\u0000", "\U0010fffe"


class PostgresDialect:
    def __init__(self, lock: str) -> None:
        """Readers lock nothing."""
        self.lock = lock

    def among(self, column: str, kind: str) -> str:
        return f"{column} = ANY(?::{_TYPES[kind]}[])"

    def bind_list(self, values: Iterable[Any]) -> ArrayLiteral | BytesArray | list[Any]:
        return pack_array(list(values))

    def upsert(self, table: str, key: Sequence[str], columns: Sequence[str]) -> str:
        names = (*key, *columns)
        changed = ", ".join(f"{name} = excluded.{name}" for name in columns)
        marks = ", ".join("?" * len(names))
        insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - names of columns
        return f"{insert} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"

    def labelled(self) -> str:
        return f"replace(c.labels, '{_NUL}', '{_STANDS_FOR_NUL}')::jsonb -> ?::text = ?::jsonb"

    def bind_label(self, name: str, value: Any) -> tuple[Any, ...]:
        name = name.replace("\x00", _STANDS_FOR_NUL)
        return name, jsontext.text(value).replace(_NUL, _STANDS_FOR_NUL)


@lru_cache(maxsize=2000)
def translate(sql: str) -> str:
    """Parameters by number; and a join needs no word that fixes its order."""
    pieces = sql.replace("CROSS JOIN", "JOIN").split("?")
    numbered = (f"${number}{piece}" for number, piece in enumerate(pieces[1:], 1))
    return pieces[0] + "".join(numbered)


def _types(struct: type[msgspec.Struct]) -> dict[str, str]:
    hints = get_type_hints(struct)
    return {name: _COLUMNS[next(iter(get_args(kind) or (kind,)))] for name, kind in hints.items()}


def _arrays(struct: type[msgspec.Struct]) -> str:
    """A parameter for each field: the values of many, as an array."""
    return ", ".join(f"?::{kind}[]" for kind in _types(struct).values())


def _alike(struct: type[msgspec.Struct], *differing: str) -> str:
    """The fields of many that are alike but for some, which are those of `new`."""
    types = _types(struct)
    return ", ".join(f"new.{name}" if name in differing else f"?::{types[name]}" for name in types)


_LISTS = {
    "ROW_ARRAYS": _arrays(Row),
    "CONTENT_ARRAYS": _arrays(Content),
    "EVENT_ARRAYS": _arrays(EventDraft),
    "ROW_ALIKE": _alike(Row, *ROW_DIFFERS),
    "CONTENT_ALIKE": _alike(Content, *CONTENT_DIFFERS),
    "EVENT_ALIKE": _alike(EventDraft, *EVENT_DIFFERS),
}


def _load(lock: str) -> tuple[PostgresDialect, Statements]:
    dialect = PostgresDialect(lock)
    loaded = statements.load(dialect, HERE, lists=_LISTS)
    # Only a transaction may pass over what others hold.
    skip = "FOR UPDATE OF m SKIP LOCKED" if lock else ""
    return dialect, {name: re.sub("@skip_locked", skip, sql) for name, sql in loaded.items()}


READING, READ_SQL = _load("")
WRITING, WRITE_SQL = _load("FOR UPDATE")
