"""From the store into bronze: executors read ranges and write files, and tell the driver which."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from postroom.pipeline.bronze.chain import Break, ChainCheck
from postroom.pipeline.bronze.packed import Packed
from postroom.pipeline.bronze.redaction import redact
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.files import FileWriter, WrittenFile, told
from postroom.pipeline.lake.tables import LEDGER, MESSAGES, RECORDS, Table
from postroom.pipeline.sources.sqlite import SqliteSource

EVENTS_PER_FILE = 250_000
_WORDS = ("message.failed", "message.dead_lettered", "message.snoozed", "message.cancelled")
_TEXTS = ("labels", "metadata", "failure_reason", "result")
_TABLES = {table.name: table for table in (LEDGER, MESSAGES, RECORDS)}


class Slice(msgspec.Struct, frozen=True):
    """A range of one table's source: what comes after one position, up to another."""

    table: str
    after: int
    up_to: int


def slices(table: Table, after: int, up_to: int, size: int = EVENTS_PER_FILE) -> list[Slice]:
    """Pieces of equal size, so that no task is the last by far."""
    rows = max(0, up_to - after)
    even = -(-rows // max(1, -(-rows // size))) if rows else size
    return [Slice(table.name, low, min(low + even, up_to)) for low in range(after, up_to, even)]


def take(piece: Slice, source: SqliteSource, uri: str, *, verify: bool = True) -> list[WrittenFile]:
    """Read one range and write it; an empty range is no file. Runs in an executor."""
    table = _TABLES[piece.table]
    writer: FileWriter | None = None
    check: ChainCheck | None = None
    if table is LEDGER and verify:
        check = ChainCheck(piece.after, source.hash_of(piece.after))
    for batch in _read(piece, source, check):
        if batch.num_rows:
            writer = writer or FileWriter(uri, table.schema, None, table.tracked, durable=True)
            writer.write(CLEAN[piece.table](batch))
    note = ""
    if check is not None:
        check.end(piece.up_to)
        if check.count:
            note = msgspec.json.encode({"count": check.count, "breaks": check.breaks}).decode()
    if writer is not None:
        return [writer.close(note)]
    return [WrittenFile("", 0, 0, None, "", note)] if note else []


def _read(piece: Slice, source: SqliteSource, check: ChainCheck | None) -> Iterator[pa.RecordBatch]:
    if piece.table == LEDGER.name:
        return _events(piece, source, check)
    if piece.table == MESSAGES.name:
        return source.ended(piece.after, piece.up_to)
    return source.records(piece.after, piece.up_to)


def _events(piece: Slice, source: SqliteSource, check: ChainCheck | None) -> Iterator[pa.RecordBatch]:
    for batch in source.packed(piece.after, piece.up_to):
        packed = Packed(batch)
        if check is not None:
            check.add(packed)
        yield packed.opened()


def _clean_ledger(batch: pa.RecordBatch) -> pa.Table:
    """Only events that quote somebody can hold a secret."""
    table = pa.Table.from_batches([batch])
    quoting = _is_any(batch.column("type"), _WORDS)
    if not pc.any(quoting).as_py():
        return table
    clean, hit = redact(table["data"].filter(quoting))
    if pc.any(hit).as_py():
        data = pc.replace_with_mask(table["data"].combine_chunks(), quoting, _whole(clean))
        table = table.set_column(table.schema.get_field_index("data"), "data", data)
    return table


def _is_any(column: pa.Array, values: tuple[str, ...]) -> pa.Array:
    """Of a column that repeats, each value is looked at once."""
    if not isinstance(column, pa.DictionaryArray):
        return pc.is_in(column, value_set=pa.array(values))
    return pc.is_in(column.dictionary, value_set=pa.array(values)).take(column.indices)


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _clean_messages(batch: pa.RecordBatch) -> pa.Table:
    table = pa.Table.from_batches([batch])
    kinds = table["content_type"]
    textual = pc.or_(pc.equal(kinds, "application/json"), pc.starts_with(kinds, "text/"))
    body = table["body"].combine_chunks()
    columns: dict[str, Any] = {name: table[name] for name in table.schema.names}
    columns["body"] = _text(pc.if_else(textual, body, None))
    columns["body_bytes"], touched = _clean_bytes(pc.if_else(textual, None, body))
    columns["result"] = _text(table["result"].combine_chunks())
    for name in ("body", *_TEXTS):
        columns[name], hit = redact(columns[name])
        touched = pc.or_(_whole(hit), touched)
    columns["redacted"] = touched
    return pa.table({name: columns[name] for name in MESSAGES.schema.names})


def _text(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Bytes as text; what is no text keeps its place, with marks for the bytes that make no sense."""
    whole = _whole(column)
    try:
        return whole.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(
            [None if each is None else each.decode("utf-8", "replace") for each in whole.to_pylist()],
            pa.string(),
        )


def _clean_bytes(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Bodies of other kinds may be texts too, and hold secrets; what is no text is left as it is."""
    untouched = pa.array([False] * len(column))
    if column.null_count == len(column):
        return column, untouched
    texts = [None if each is None else _decoded(each) for each in column.to_pylist()]
    clean, hit = redact(pa.array(texts, pa.string()))
    if not pc.any(hit).as_py():
        return column, untouched
    return pc.if_else(hit, clean.cast(pa.binary()), column), hit


def _decoded(body: bytes) -> str | None:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _clean_records(batch: pa.RecordBatch) -> pa.Table:
    table = pa.Table.from_batches([batch])
    data, hit = redact(table["data"])
    place = table.schema.get_field_index("data")
    return table.set_column(place, "data", data).append_column("redacted", hit)


CLEAN: dict[str, Callable[[pa.RecordBatch], pa.Table]] = {
    LEDGER.name: _clean_ledger,
    MESSAGES.name: _clean_messages,
    RECORDS.name: _clean_records,
}


def breaks_of(files: Sequence[WrittenFile]) -> tuple[int, list[Break]]:
    """How many events did not fit their hashes, and the first of them."""
    count, breaks = 0, []
    for file in files:
        if file.note:
            note = json.loads(file.note)
            count += note["count"]
            breaks += [Break(each["seq"], each["problem"]) for each in note["breaks"]]
    return count, breaks


class Ingest(msgspec.Struct, frozen=True):
    """The tasks of bronze: one for each piece."""

    pieces: list[Slice]
    source: SqliteSource
    uris: dict[str, str]
    verify: bool = True

    def __call__(self, number: int) -> Iterator[tuple[str, pa.Table]]:
        piece = self.pieces[number]
        yield piece.table, told(take(piece, self.source, self.uris[piece.table], verify=self.verify))
