"""Tables on an object store, read with Arrow: by workers of Spark, and by the light engine."""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from postroom.pipeline.lake.files import filesystem
from postroom.pipeline.lake.lake import LakeFile
from postroom.pipeline.lake.reading import read_batches
from postroom.pipeline.lake.tables import Table


def read_files(
    files: Sequence[tuple[str, str | None]],
    schema: pa.Schema,
    cut: str | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The work of tasks that are handed numbers of files: their rows, with all declared columns."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            uri, value = files[number]
            for rows in read_batches(uri):
                yield _whole(rows, schema, cut, value)


def _whole(rows: pa.RecordBatch, schema: pa.Schema, cut: str | None, value: str | None) -> pa.RecordBatch:
    there = set(rows.schema.names)
    columns = []
    for field in schema:
        if field.name == cut:
            columns.append(pa.array([_value(field.type, value)] * rows.num_rows, field.type))
        elif field.name in there:
            columns.append(rows.column(field.name).cast(field.type))
        else:
            columns.append(pa.nulls(rows.num_rows, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _value(kind: pa.DataType, text: str | None) -> Any:
    return date.fromisoformat(text) if text is not None and pa.types.is_date(kind) else text


def dataset(table: Table, files: Sequence[LakeFile]) -> pads.Dataset:
    """A table as something that can be asked without reading all of it."""
    fs, _ = filesystem(files[0].uri)
    parts = None
    if table.cut:
        parts = pads.partitioning(pa.schema([table.schema.field(table.cut)]), flavor="hive")
    paths = [filesystem(file.uri)[1] for file in files]
    root = paths[0][: -len(files[0].path)]
    return pads.dataset(
        paths, schema=table.schema, format="parquet", filesystem=fs, partitioning=parts,
        partition_base_dir=root,
    )  # fmt: skip
