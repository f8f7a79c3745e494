"""Reading Parquet files of the lake, every page checked against its checksum. A file that fails is named."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from postroom.pipeline.lake.files import filesystem

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
