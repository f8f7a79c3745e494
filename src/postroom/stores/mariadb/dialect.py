"""How MariaDB says what other databases say otherwise. Lists are written out in the statement."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from postroom.kernel import jsontext
from postroom.stores.sql import statements
from postroom.stores.sql.dialect import Statements

HERE = "postroom.stores.mariadb"
LARGEST_EXACT = 2**53
# A word of MariaDB's own that is the name of a column.
_KEY = re.compile(r"\bkey\b")
# What partial indexes of other databases are found by has a column here.
_COLUMNS = {"c.hitl_spec IS NOT NULL": "c.is_review = 1", "CROSS JOIN": "STRAIGHT_JOIN"}


class MariadbDialect:
    def __init__(self, lock: str) -> None:
        """Readers lock nothing."""
        self.lock = lock

    def among(self, column: str, kind: str) -> str:
        return f"{column} IN ?"

    def bind_list(self, values: Iterable[Any]) -> list[Any]:
        return list(values)

    def upsert(self, table: str, key: Sequence[str], columns: Sequence[str]) -> str:
        names = (*key, *columns)
        changed = ", ".join(f"{name} = VALUES({name})" for name in columns)
        marks = ", ".join("?" * len(names))
        insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - names of columns
        return f"{insert} ON DUPLICATE KEY UPDATE {changed}"

    def labelled(self) -> str:
        return "(JSON_CONTAINS(c.labels, ?) AND LOCATE(?, c.labels) > 0)"

    def bind_label(self, name: str, value: Any) -> tuple[Any, ...]:
        """MariaDB compares numbers as floats, so large ones must be there digit by digit too."""
        wanted = jsontext.text({name: value})
        is_large = isinstance(value, int) and abs(value) > LARGEST_EXACT
        return wanted, wanted[1:-1] if is_large else ""


@lru_cache(maxsize=2000)
def split(sql: str) -> tuple[str, ...]:
    """The pieces between which the values stand."""
    for said, meant in _COLUMNS.items():
        sql = sql.replace(said, meant)
    return tuple(_KEY.sub("`key`", sql).split("?"))


def _load(lock: str) -> tuple[MariadbDialect, Statements]:
    dialect = MariadbDialect(lock)
    loaded = statements.load(dialect, HERE)
    # Only a transaction may pass over what others hold.
    skip = "FOR UPDATE SKIP LOCKED" if lock else ""
    return dialect, {name: sql.replace("@skip_locked", skip) for name, sql in loaded.items()}


READING, READ_SQL = _load("")
WRITING, WRITE_SQL = _load("FOR UPDATE")
