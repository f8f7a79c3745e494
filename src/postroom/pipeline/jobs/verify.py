"""Looking through the lake: every page against its checksum, every file against what the log says of it."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from postroom.pipeline.errors import LakeDamaged
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.lake import Lake, LakeFile
from postroom.pipeline.lake.reading import read_batches
from postroom.pipeline.lake.tables import ALL, Table

Checked = Callable[[str, int, int], None]
"""Told after each table: its name, how many files were read, and how many are damaged."""


def verify_lake(
    lake: Lake, checked: Checked = lambda *_: None, tables: Sequence[Table] = ALL
) -> list[LakeDamaged]:
    """Read everything. What is found is returned, not raised: one damage must not hide another."""
    found: list[LakeDamaged] = []
    for table in tables:
        try:
            files = lake.files(table)
        except LakeDamaged as error:
            found.append(error)
            checked(table.name, 0, 1)
            continue
        damaged = [error for file in files if (error := check_file(table, file)) is not None]
        found += damaged
        checked(table.name, len(files), len(damaged))
    return found


def check_file(table: Table, file: LakeFile) -> LakeDamaged | None:
    try:
        problem = _problem(table, file, read_batches(file.uri))
    except pa.ArrowInvalid as error:
        problem = " ".join(str(error).split())[:300]
    return None if problem is None else LakeDamaged(table=table.name, problem=problem, file=file)


def _problem(table: Table, file: LakeFile, batches: Iterator[pa.RecordBatch]) -> str | None:
    rows = 0
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    for batch in batches:
        rows += batch.num_rows
        for name in table.tracked:
            bounds = pc.min_max(batch.column(name))
            least, most = bounds["min"].as_py(), bounds["max"].as_py()
            if least is not None:
                low[name] = min(least, low.get(name, least))
                high[name] = max(most, high.get(name, most))
    if rows != file.rows:
        return f"it has {rows:,} rows, and should have {file.rows:,}"
    for name in table.tracked:
        told, found = (file.low.get(name), file.high.get(name)), (low.get(name), high.get(name))
        if None not in told and _plain(told) != _plain(found):
            return f"{name} goes from {found[0]} to {found[1]}, and should go from {told[0]} to {told[1]}"
    return None


def _plain(bounds: tuple[Any, Any]) -> tuple[str, ...]:
    return tuple(
        value.isoformat().replace("+00:00", "") if isinstance(value, datetime | date) else str(value)
        for value in bounds
    )
