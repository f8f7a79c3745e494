"""Replacing rows in tables that are cut into parts: only the parts that are touched are written anew.

New rows come sorted by their cut. When all of a part have come, the rows that stay are added from its old
files, and the driver commits the new files in the place of the old ones.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.files import FileWriter, WrittenFile, filesystem, told


class UpsertOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A table that a frame fills: with its rows, or with those in one of its list columns."""

    table: str
    uri: str
    schema: Any
    cut: str
    by: str
    tracked: tuple[str, ...]
    column: str | None = None
    old: dict[str | None, tuple[str, ...]] = {}


class _Part:
    """One part of one table while it is written."""

    def __init__(self, output: UpsertOutput, cut: str | None) -> None:
        self._output = output
        self._cut = cut
        self._writer: FileWriter | None = None

    def write(self, rows: pa.Table) -> None:
        if rows.num_rows:
            if self._writer is None:
                where = (self._output.cut, self._cut)
                self._writer = FileWriter(self._output.uri, self._output.schema, where, self._output.tracked)
            self._writer.write(rows)

    def close(self, replaced: pa.Array) -> list[WrittenFile]:
        for uri in self._output.old.get(self._cut, ()):
            for rows in read_declared(uri, self._output.schema):
                gone = pc.is_in(rows[self._output.by], value_set=replaced)
                self.write(rows.filter(pc.invert(gone)))
        return [self._writer.close()] if self._writer is not None else []


def read_batches(uri: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    fs, path = filesystem(uri)
    try:
        with fs.open_input_file(path) as file:
            yield from pq.ParquetFile(file).iter_batches(columns=columns)
    except (pa.ArrowInvalid, OSError) as error:
        # Arrow does not say which file it could not read.
        raise pa.ArrowInvalid(f"{uri} is damaged: {error}") from error


def read_declared(uri: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """All of a file; columns that were declared since it was written have nothing in them."""
    for batch in read_batches(uri):
        rows = pa.Table.from_batches([batch])
        for field in schema:
            if field.name not in rows.schema.names:
                rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        yield rows


def write_sorted(
    outputs: Sequence[UpsertOutput], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The work of one task. The first output is the frame itself, and says which rows are replaced."""
    main = outputs[0]
    current: str | None = None
    parts: list[_Part] = []
    replaced: list[pa.Array] = []

    def finish() -> Iterator[pa.RecordBatch]:
        keys = pc.unique(pa.concat_arrays(replaced))
        for output, part in zip(outputs, parts, strict=True):
            yield told(output.table, part.close(keys))

    for batch in batches:
        for cut, rows in pieces(pa.Table.from_batches([batch]), main.cut):
            if not parts or cut != current:
                if parts:
                    yield from finish()
                current, parts, replaced = cut, [_Part(output, cut) for output in outputs], []
            replaced.append(rows[main.by].combine_chunks())
            for output, part in zip(outputs, parts, strict=True):
                part.write(rows if output.column is None else _unfolded(rows, output))
    if parts:
        yield from finish()


def _unfolded(rows: pa.Table, output: UpsertOutput) -> pa.Table:
    """The entries of a list column as rows, each with the key of the row it stood in."""
    lists = rows[output.column].combine_chunks()
    owners = pc.list_parent_indices(lists)
    entries = pc.list_flatten(lists)
    columns = {
        entries.type.field(i).name: pc.struct_field(entries, [i]) for i in range(entries.type.num_fields)
    }
    columns[output.by] = rows[output.by].take(owners)
    return pa.table(columns)


def pieces(table: pa.Table, cut: str) -> Iterator[tuple[str | None, pa.Table]]:
    """A table's rows by the value of its cut, in the order they come."""
    column = table[cut]
    values = pc.unique(column)
    for value in values:
        python = value.as_py()
        if len(values) == 1:
            rows = table
        elif python is None:
            rows = table.filter(pc.is_null(column))
        else:
            rows = table.filter(pc.equal(column, value))
        yield (python.isoformat() if isinstance(python, date) else python), rows
