"""Adding rows to a table that only grows."""

from collections.abc import Iterator

import pyarrow as pa

from postroom.pipeline.lake.files import FileWriter, told


def write_all(
    table: str, uri: str, schema: pa.Schema, tracked: tuple[str, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The work of one task: all its rows into one file, if there are any."""
    writer: FileWriter | None = None
    for batch in batches:
        if batch.num_rows:
            writer = writer or FileWriter(uri, schema, None, tracked)
            writer.write(batch)
    if writer is not None:
        yield told(table, [writer.close()])
