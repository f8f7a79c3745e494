"""Reading Parquet files of the lake, every page checked against its checksum. A file that fails is named."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from postroom.pipeline.lake.files import filesystem
from postroom.pipeline.lake.snapshot import LakeFile
from postroom.pipeline.lake.tables import Table

if TYPE_CHECKING:
    import pyarrow.dataset as pads

DAMAGED = "is damaged"
"""Said of a file in every error about it, wherever that is raised: in a worker it reaches us only as a
text."""


@contextmanager
def _opened(uri: str) -> Iterator[pq.ParquetFile]:
    fs, path = filesystem(uri)
    with fs.open_input_file(path) as file:
        yield pq.ParquetFile(file, page_checksum_verification=True)


def read_batches(uri: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    try:
        with _opened(uri) as file:
            yield from file.iter_batches(columns=columns)
    except (pa.ArrowInvalid, OSError) as error:
        # Arrow does not say which file it could not read.
        raise pa.ArrowInvalid(f"{uri} {DAMAGED}: {error}") from error


def read_declared(uri: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """All of a file; columns that were declared since it was written have nothing in them."""
    for batch in read_batches(uri):
        yield declare(pa.Table.from_batches([batch]), schema)


def read_rows(file: LakeFile, table: Table, columns: Sequence[str] | None = None) -> pa.Table:
    """Some or all declared columns of a file, with the one that only its path tells."""
    return pa.concat_tables(
        [*read_portions(file, table, columns), declared_as(table, columns).empty_table()]
    ).combine_chunks()


def read_portions(file: LakeFile, table: Table, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The same, a bounded number of rows at a time."""
    wanted = declared_as(table, columns)
    stored = [name for name in wanted.names if name != table.cut]
    for batch in read_batches(file.uri, stored):
        rows = declare(pa.Table.from_batches([batch]), wanted)
        if table.cut in wanted.names:
            kind = wanted.field(table.cut).type
            part = pa.repeat(pa.scalar(cut_value(kind, file.cut), kind), rows.num_rows)
            rows = rows.set_column(rows.schema.get_field_index(table.cut), table.cut, part)
        yield rows.select(wanted.names).cast(wanted)


def scan_rows(
    files: Sequence[LakeFile], table: Table, columns: Sequence[str] | None = None, where: Any = None
) -> pa.Table:
    """The same of many files, which cost little more than what is in them; of `where`, an expression, what it
    leaves out is not held in memory."""
    if not files:
        return declared_as(table, columns).empty_table()
    try:
        return dataset(files, table, columns).to_table(filter=where).combine_chunks()
    except (pa.ArrowInvalid, OSError):
        for file in files:
            read_rows(file, table, columns)  # which says which it is
        raise


def dataset(files: Sequence[LakeFile], table: Table, columns: Sequence[str] | None = None) -> "pads.Dataset":
    """Files as something that can be asked without reading all of it."""
    import pyarrow.dataset as pads  # with it comes pandas, where there is one: a fifth of a second

    checked = pads.ParquetFileFormat(
        default_fragment_scan_options=pads.ParquetFragmentScanOptions(page_checksum_verification=True)
    )
    wanted = declared_as(table, columns)
    fs, first = filesystem(files[0].uri)
    parts = None
    if table.cut in wanted.names:
        parts = pads.partitioning(pa.schema([wanted.field(table.cut)]), flavor="hive")
    root = first[: -len(files[0].path)]
    return pads.dataset(
        [root + file.path for file in files], schema=wanted, format=checked, filesystem=fs,
        partitioning=parts, partition_base_dir=root,
    )  # fmt: skip


def declared_as(table: Table, columns: Sequence[str] | None) -> pa.Schema:
    return table.schema if columns is None else pa.schema([table.schema.field(name) for name in columns])


def cut_value(kind: pa.DataType, text: str | None) -> Any:
    """The value of the column that a part is cut by, as its path tells it."""
    return date.fromisoformat(text) if text is not None and pa.types.is_date(kind) else text


def read_what_is_whole(uri: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """Those groups of rows of a damaged file that can still be read; none when its end is damaged."""
    try:
        with _opened(uri) as file:
            for group in range(file.num_row_groups):
                try:
                    rows = file.read_row_group(group)
                except (pa.ArrowInvalid, OSError):
                    continue
                yield declare(rows, schema)
    except (pa.ArrowInvalid, OSError):
        return


def declare(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    for field in schema:
        if field.name not in rows.schema.names:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows
