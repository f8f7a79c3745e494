"""Files of a table written anew with the same rows: fewer of them, and sorted. Memory stays bounded."""

import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa

from postroom.pipeline.lake.files import FileWriter, WrittenFile
from postroom.pipeline.lake.lake import Lake, LakeFile
from postroom.pipeline.lake.reading import read_batches, read_declared
from postroom.pipeline.lake.tables import Table

MEMORY_MB = 512


def merge_files(lake: Lake, table: Table, files: Sequence[LakeFile]) -> WrittenFile:
    """Rows of these files of one part, in one file in the order of the table. Nothing is committed."""
    part = (table.cut, files[0].cut) if table.cut else None
    durable = table.layer == "bronze"
    writer = FileWriter(lake.uri(table), table.schema, part, table.tracked, durable=durable)
    kept = pa.schema([field for field in table.schema if field.name != table.cut])
    lined_up = line_up(table, files)
    rows = _batches(lined_up or files, kept)
    if not lined_up:
        rows = _sorted(pa.RecordBatchReader.from_batches(kept, rows), table.order)
    for batch in rows:
        writer.write(batch)
    return writer.close()


def line_up(table: Table, files: Sequence[LakeFile]) -> list[LakeFile]:
    """Files in an order in which all their rows are in that of the table; none where there is no such.

    Numbers of events and records rise from file to file and within each, so nothing has to be sorted.
    """
    [column, *more] = table.order
    if more or not pa.types.is_integer(table.schema.field(column).type):
        return []
    ordered = sorted(files, key=lambda file: file.low.get(column) or 0)
    apart = all(
        one.high.get(column) is not None
        and other.low.get(column) is not None
        and one.high[column] < other.low[column]
        for one, other in pairwise(ordered)
    )
    return ordered if apart and all(_rises(file, column) for file in ordered) else []


def _rises(file: LakeFile, column: str) -> bool:
    last = None
    for batch in read_batches(file.uri, [column]):
        values = batch.column(0).to_numpy(zero_copy_only=False)
        if (np.diff(values) < 0).any() or (last is not None and values[0] < last):
            return False
        last = values[-1]
    return True


def _batches(files: Sequence[LakeFile], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for file in files:
        for rows in read_declared(file.uri, schema):
            yield from rows.select(schema.names).cast(schema).to_batches()


def _sorted(rows: pa.RecordBatchReader, order: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """DuckDB sorts on disk what does not fit."""
    with tempfile.TemporaryDirectory(prefix="postroom-sort-") as scratch, duckdb.connect(":memory:") as db:
        db.execute(f"SET memory_limit = '{MEMORY_MB}MB'; SET temp_directory = '{scratch}'; SET threads = 2")
        db.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
        names = ", ".join(f'"{name}" NULLS LAST' for name in order)
        yield from db.from_arrow(rows).order(names).to_arrow_reader(65_536)
