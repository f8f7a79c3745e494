"""Files of a table written anew with the same rows: fewer of them, and sorted. Memory stays bounded."""

import tempfile
from collections.abc import Iterator, Sequence

import duckdb
import pyarrow as pa

from postroom.pipeline.lake.files import FileWriter, WrittenFile
from postroom.pipeline.lake.lake import Lake, LakeFile
from postroom.pipeline.lake.reading import read_declared
from postroom.pipeline.lake.tables import Table

MEMORY_MB = 512


def merge_files(lake: Lake, table: Table, files: Sequence[LakeFile]) -> WrittenFile:
    """Rows of these files of one part, in one file in the order of the table. Nothing is committed."""
    part = (table.cut, files[0].cut) if table.cut else None
    durable = table.layer == "bronze"
    writer = FileWriter(lake.uri(table), table.schema, part, table.tracked, durable=durable)
    kept = pa.schema([field for field in table.schema if field.name != table.cut])
    for batch in _sorted(pa.RecordBatchReader.from_batches(kept, _batches(files, kept)), table.order):
        writer.write(batch)
    return writer.close()


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
