"""Parquet files of a table, written by whoever has the rows; nobody sees them before their commit.

Files of bronze are synced to disk before they are told of, since what the lake has may leave the hot store;
all other layers can be built from bronze again.
"""

import functools
import json
import os
import time
import uuid
from datetime import date, datetime
from typing import Any
from urllib.parse import quote, unquote, urlparse

import msgspec
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.tables import INCOMPRESSIBLE, RANGELESS, RISING, UNIQUE

ROWS_PER_GROUP = 64 * 1024
EMPTY_CUT = "__HIVE_DEFAULT_PARTITION__"


class WrittenFile(msgspec.Struct, frozen=True):
    """A file that was written and is not yet part of its table."""

    path: str
    size: int
    rows: int
    cut: str | None
    stats: str
    note: str = ""


WRITTEN_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("rows", pa.int64()),
        ("cut", pa.string()),
        ("stats", pa.string()),
        ("note", pa.string()),
    ]
)


def filesystem(uri: str) -> tuple[pafs.FileSystem, str]:
    """The file system of a table, and its path there."""
    if uri.startswith(("s3://", "s3a://")):
        return object_store(), uri.partition("://")[2]
    if "://" in uri:
        return pafs.FileSystem.from_uri(uri)
    return pafs.LocalFileSystem(), os.path.abspath(uri)


@functools.cache
def object_store() -> pafs.FileSystem:
    """As the usual variables of the environment say, which Delta reads too."""
    said = os.environ
    endpoint = said.get("AWS_ENDPOINT_URL_S3") or said.get("AWS_ENDPOINT_URL") or None
    return pafs.S3FileSystem(
        endpoint_override=endpoint,
        region=said.get("AWS_REGION") or said.get("AWS_DEFAULT_REGION") or "us-east-1",
    )


def local_path(uri: str) -> str | None:
    if uri.startswith("file://"):
        return unquote(urlparse(uri).path)
    return None if "://" in uri else os.path.abspath(uri)


class FileWriter:
    """One growing file of a table."""

    def __init__(
        self,
        uri: str,
        schema: pa.Schema,
        cut: tuple[str, str | None] | None,
        tracked: tuple[str, ...],
        *,
        durable: bool = False,
    ) -> None:
        self._fs, root = filesystem(uri)
        self._cut = cut
        self._tracked = tracked
        self.rows = 0
        self._pending: list[pa.Table] = []
        self._low: dict[str, Any] = {}
        self._high: dict[str, Any] = {}
        name = f"part-{uuid.uuid4().hex}.zstd.parquet"
        self._schema = schema
        if cut is not None:
            column, value = cut
            name = f"{column}={quote(value) if value is not None else EMPTY_CUT}/{name}"
            self._schema = pa.schema([field for field in schema if field.name != column])
        self.path = name
        self._full = f"{root}/{name}"
        self._durable = durable
        self._local = local_path(uri) is not None
        if self._local:
            os.makedirs(os.path.dirname(self._full), exist_ok=True)
        self._sink = self._fs.open_output_stream(self._full)
        self._writer: pq.ParquetWriter | None = None

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        wanted = self._written_as(table.schema)
        rows = table.select(wanted.names)
        self._pending.append(rows if rows.schema == wanted else rows.cast(wanted))
        if sum(each.num_rows for each in self._pending) >= ROWS_PER_GROUP:
            self._flush()
        self.rows += table.num_rows
        for column in self._tracked:
            bounds = pc.min_max(table[column])
            low, high = bounds["min"].as_py(), bounds["max"].as_py()
            if low is not None:
                self._low[column] = min(low, self._low.get(column, low))
                self._high[column] = max(high, self._high.get(column, high))

    def _written_as(self, given: pa.Schema) -> pa.Schema:
        """As declared; columns that come as places in a list of values are written as such without a look at
        every value."""
        if self._writer is not None:
            return self._writer.schema
        kinds = {field.name: field.type for field in given if pa.types.is_dictionary(field.type)}
        schema = pa.schema([field.with_type(kinds.get(field.name, field.type)) for field in self._schema])
        self._writer = pq.ParquetWriter(
            self._sink, schema, version="2.6", write_page_checksum=True, store_schema=not kinds,
            **_ways(schema.names),
        )  # fmt: skip
        return schema

    def _flush(self) -> None:
        if self._pending and self._writer is not None:
            rows = pa.concat_tables(self._pending).unify_dictionaries()
            self._writer.write_table(rows, ROWS_PER_GROUP)
            self._pending = []

    def close(self, note: str = "") -> WrittenFile:
        self._flush()
        self._written_as(self._schema)
        if self._writer is not None:
            self._writer.close()
        self._sink.close()
        if self._local and self._durable:
            _sync(self._full)
        stats = {"numRecords": self.rows, "minValues": _plain(self._low), "maxValues": _plain(self._high)}
        size = self._fs.get_file_info(self._full).size or 0
        cut = self._cut[1] if self._cut else None
        return WrittenFile(self.path, size, self.rows, cut, json.dumps(stats), note)


def _ways(names: list[str]) -> dict[str, Any]:
    """How each column is written; what does not pay is left out."""
    return {
        "compression": {name: "none" if name in INCOMPRESSIBLE else "zstd" for name in names},
        "use_dictionary": [name for name in names if name not in UNIQUE],
        "column_encoding": dict.fromkeys(RISING.intersection(names), "DELTA_BINARY_PACKED") or None,
        "write_statistics": [name for name in names if name not in RANGELESS],
        "write_batch_size": 8192,
    }


def _sync(path: str) -> None:
    for each, flags in ((path, os.O_RDONLY), (os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)):
        handle = os.open(each, flags)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _plain(bounds: dict[str, Any]) -> dict[str, Any]:
    """As Delta writes them."""
    told = {}
    for name, value in bounds.items():
        if isinstance(value, datetime):
            value = value.strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"
        elif isinstance(value, date):
            value = value.isoformat()
        told[name] = value
    return told


def told(files: list[WrittenFile]) -> pa.Table:
    """What a task tells of the files it wrote."""
    return pa.Table.from_pylist([msgspec.structs.asdict(file) for file in files], WRITTEN_SCHEMA)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
