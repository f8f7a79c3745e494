"""Lakes of a few rows, said outright: no store, no Spark."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from postroom.pipeline.lake.files import FileWriter
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.reading import read_batches
from postroom.pipeline.lake.tables import Table


def columns(table: Table, values: Sequence[dict[str, Any]]) -> pa.Table:
    """These rows with a table's declared columns; what is not said is null."""
    full = [{name: row.get(name) for name in table.schema.names} for row in values]
    return pa.Table.from_pylist(full, table.schema)


def put(lake: Lake, table: Table, *values: dict[str, Any], positions: Positions | None = None) -> None:
    """A file for each part that these rows fall into. What is not said is null."""
    parts: dict[str | None, list[dict[str, Any]]] = {}
    for row in values:
        parts.setdefault(_cut(table, row), []).append(
            {name: row.get(name) for name in table.schema.names if name != table.cut}
        )
    written = []
    for cut, rows in parts.items():
        where = (table.cut, cut) if table.cut else None
        writer = FileWriter(lake.uri(table), table.schema, where, table.tracked)
        kept = pa.schema([field for field in table.schema if field.name != table.cut])
        writer.write(pa.Table.from_pylist(rows, kept))
        written.append(writer.close())
    lake.commit(table, written, positions or Positions(1, 1))


def _cut(table: Table, row: dict[str, Any]) -> str | None:
    if table.cut == "month":
        return row["day"].isoformat()[:7]
    value = row[table.cut] if table.cut else None
    return value.isoformat() if isinstance(value, date) else value


def rows(lake: Lake, table: Table) -> list[dict[str, Any]]:
    return [
        row for file in lake.files(table) for batch in read_batches(file.uri) for row in batch.to_pylist()
    ]
