"""How SQLite says what other databases say otherwise. Lists are bound as JSON."""

from collections.abc import Iterable, Sequence
from typing import Any

from postroom.kernel import jsontext
from postroom.kernel.rows import ROW_FIELDS
from postroom.stores.sql import statements
from postroom.stores.sql.statements import Statements

HERE = "postroom.stores.sqlite"


class SqliteDialect:
    lock = ""

    def among(self, column: str, kind: str) -> str:
        return f"{column} IN (SELECT value FROM json_each(?))"  # noqa: S608 - a name of a column

    def bind_list(self, values: Iterable[Any]) -> str:
        return jsontext.text(list(values))

    def upsert(self, table: str, key: Sequence[str], columns: Sequence[str]) -> str:
        names = (*key, *columns)
        changed = ", ".join(f"{name} = excluded.{name}" for name in columns)
        marks = ", ".join("?" * len(names))
        insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - names of columns
        return f"{insert} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"

    def labelled(self) -> str:
        return (
            "EXISTS (SELECT 1 FROM json_each(c.labels) label"
            " WHERE label.key = ? AND replace(label.type, 'real', 'integer') = ? AND label.atom IS ?)"
        )

    def bind_label(self, name: str, value: Any) -> tuple[Any, ...]:
        """With SQLite's name of the value's JSON type, so that true is not taken for 1."""
        if value is None:
            return name, "null", None
        if isinstance(value, bool):
            return name, ("true" if value else "false"), int(value)
        return name, ("integer" if isinstance(value, int | float) else "text"), value


def _uniform_column(name: str, mark: int) -> str:
    """A column of many rows that are alike: only the id and what hangs on it are each one's own."""
    special = {
        "id": "wanted.value",
        "correlation_id": f"coalesce(?{mark}, wanted.value)",
        "seq": f"?{mark} + wanted.key",
    }
    return special.get(name, f"?{mark}")


DIALECT = SqliteDialect()
SQL: Statements = statements.load(
    DIALECT,
    HERE,
    lists={
        "UNIFORM_ROW": ", ".join(_uniform_column(name, mark) for mark, name in enumerate(ROW_FIELDS, 1)),
        "NEXT_MARK": str(len(ROW_FIELDS) + 1),
    },
)
