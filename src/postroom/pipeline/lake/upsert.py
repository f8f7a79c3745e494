"""Replacing rows in tables that are cut into parts: only files that hold such rows are written anew.

New rows come sorted by their cut. When all of a part have come, the rows that stay are added from the old
files that are replaced, and the driver commits the new files in the place of those.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
import pyarrow as pa

from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.files import FileWriter, WrittenFile, told
from postroom.pipeline.lake.reading import read_declared

ROWS_PER_FILE = 500_000
_BETWEEN = "\x1f"

Build = Callable[[Iterator[pa.Table]], Iterator[Sequence[pa.Table]]]
"""Makes the rows of each output from the rows of one part, which come in portions."""


class UpsertOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A table that is filled. Old rows with the same values of `by` as new ones of the first output go."""

    table: str
    uri: str
    schema: Any
    cut: str
    by: tuple[str, ...]
    tracked: tuple[str, ...]
    old: dict[str | None, tuple[str, ...]] = {}


class _Part:
    """One part of one table while it is written."""

    def __init__(self, output: UpsertOutput, cut: str | None) -> None:
        self._output = output
        self._cut = cut
        self._writer: FileWriter | None = None
        self._written: list[WrittenFile] = []

    def write(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        if self._writer is not None and self._writer.rows >= ROWS_PER_FILE:
            self._close()
        if self._writer is None:
            where = (self._output.cut, self._cut)
            self._writer = FileWriter(self._output.uri, self._output.schema, where, self._output.tracked)
        self._writer.write(rows)

    def _close(self) -> None:
        if self._writer is not None:
            self._written.append(self._writer.close())
            self._writer = None

    def finish(self, replaced: pa.Array) -> list[WrittenFile]:
        for uri in self._output.old.get(self._cut, ()):
            for rows in read_declared(uri, self._output.schema):
                gone = pc.is_in(keys_of(rows, self._output.by), value_set=replaced)
                self.write(rows.filter(pc.invert(gone)))
        self._close()
        return self._written


def keys_of(rows: pa.Table, names: Sequence[str]) -> pa.Array:
    """One value for each row by which it can be looked up, of one column or of several."""
    if len(names) == 1:
        return rows[names[0]].combine_chunks()
    columns = [rows[name].combine_chunks().cast(pa.string()) for name in names]
    return pc.binary_join_element_wise(*columns, _BETWEEN, null_handling="replace", null_replacement="")


def unchanged(portions: Iterator[pa.Table]) -> Iterator[Sequence[pa.Table]]:
    """The rows as they come, for one output."""
    return ((rows,) for rows in portions)


def write_parts(
    outputs: Sequence[UpsertOutput], build: Build, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The work of one task."""
    main = outputs[0]
    tables = (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows)
    portions = (piece for table in tables for piece in pieces(table, main.cut))
    for cut, group in groupby(portions, key=itemgetter(0)):
        parts = [_Part(output, cut) for output in outputs]
        replaced: list[pa.Array] = []
        for built in build(rows for _, rows in group):
            replaced.append(pc.unique(keys_of(built[0], main.by)))
            for part, rows in zip(parts, built, strict=True):
                part.write(rows)
        keys = pa.concat_arrays(replaced)
        for output, part in zip(outputs, parts, strict=True):
            yield told(output.table, part.finish(keys))


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
