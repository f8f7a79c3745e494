"""Erasing messages from every layer of the lake, down to the files. Asking again does no harm.

What is left says that there was a message, when, and how it ended; nothing of what anybody wrote.
"""

import asyncio
from collections.abc import Sequence

import msgspec
import pyarrow as pa

from postroom.clock import Clock, SystemClock
from postroom.kernel.erasure import ERASED, Subject
from postroom.pipeline.jobs.lock import locked
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.files import FileWriter
from postroom.pipeline.lake.lake import File, Lake, named
from postroom.pipeline.lake.tables import (
    BY_SHORT,
    CHUNKS,
    FAILURE_CAUSES,
    LEDGER,
    MESSAGE_LIFE,
    MESSAGES,
    QUARANTINE,
    RECORDS,
    Table,
)
from postroom.pipeline.lake.upsert import read_batches

_EMPTIED = '{"erased":true}'


class Layer(msgspec.Struct, frozen=True):
    """A table, the column that names a message, what is taken out, and which column shows that it was."""

    table: Table
    column: str
    emptied: dict[str, str | None]
    drop: bool = False


LAYERS = (
    Layer(
        MESSAGES,
        "id",
        {
            "body": _EMPTIED, "body_bytes": None, "labels": None, "metadata": None, "files": None,
            "result": None, "failure_reason": ERASED, "source_id": None, "sender": None, "sender_id": None,
            "idempotency_key": None,
        },
    ),
    Layer(RECORDS, "message_id", {"data": _EMPTIED}),
    Layer(LEDGER, "message_id", {}),
    Layer(MESSAGE_LIFE, "message_id", {"error_reason": ERASED}),
    Layer(FAILURE_CAUSES, "example_id", {"example_reason": ERASED}),
    Layer(QUARANTINE, "key", {"row": _EMPTIED}),
    Layer(CHUNKS, "message_id", {}, drop=True),
)  # fmt: skip


class LakeEraser:
    """What the room's erasure asks of a lake."""

    def __init__(self, lake: Lake, clock: Clock | None = None) -> None:
        self._lake = lake
        self._clock = clock or SystemClock()

    async def preview(self, tenant: str, message_ids: list[str]) -> int:
        return await asyncio.to_thread(self.count, message_ids)

    async def erase(self, tenant: str, message_ids: list[str]) -> int:
        return await asyncio.to_thread(self.carry_out, message_ids)

    def find(self, subject: Subject) -> list[str]:
        """Messages of the lake that are about a subject, also those that the hot store no longer has."""
        from postroom.pipeline.serving.engine import engine

        place, _, path = subject.field.partition(".")
        with engine(self._lake) as light:
            if not light.has("messages"):
                return []
            if place in ("labels", "body"):
                clause, values = f"json_extract_string({place}, ?) = ?", [f"$.{path}", str(subject.value)]
            else:
                clause, values = f"{BY_SHORT['messages'].schema.field(place).name} = ?", [subject.value]
            sql = f"SELECT DISTINCT id FROM messages WHERE {clause} ORDER BY id"  # noqa: S608 - a column's name
            return [row["id"] for row in light.rows(sql, values)]

    def count(self, message_ids: Sequence[str]) -> int:
        ids = pa.array(message_ids, pa.string())
        return sum(self._concerned(layer, ids)[1] for layer in LAYERS)

    def carry_out(self, message_ids: Sequence[str]) -> int:
        ids = pa.array(message_ids, pa.string())
        changed = 0
        with locked(self._lake, self._clock):
            for layer in LAYERS:
                files, rows = self._concerned(layer, ids)
                if rows:
                    self._rewrite(layer, files, ids)
                    changed += rows
        return changed

    def _concerned(self, layer: Layer, ids: pa.Array) -> tuple[list[File], int]:
        """Files that hold something of these messages which is to go, and how many rows that is."""
        files, rows = [], 0
        for file in self._lake.files(layer.table):
            count = 0
            for batch in read_batches(file.uri):
                table = pa.Table.from_batches([batch])
                hit = pc.fill_null(pc.is_in(table[layer.column], value_set=ids), False)
                count += pc.sum(pc.and_(hit, self._still(layer, table))).as_py() or 0
            if count:
                files.append(file)
                rows += count
        return files, rows

    def _still(self, layer: Layer, table: pa.Table) -> pa.ChunkedArray | pa.Array:
        """Rows from which nothing was taken yet."""
        if layer.drop:
            return pa.chunked_array([pa.array([True] * table.num_rows)])
        if layer.table is LEDGER:
            return pc.match_substring(table["data"], '"reason"')
        left = pa.chunked_array([pa.array([False] * table.num_rows)])
        for name, mark in layer.emptied.items():
            column = table[name]
            full = pc.is_valid(column)
            if mark is not None:
                full = pc.and_(full, pc.fill_null(pc.not_equal(column, mark), False))
            left = pc.or_(left, full)
        return left

    def _rewrite(self, layer: Layer, files: list[File], ids: pa.Array) -> None:
        table = layer.table
        written = []
        for file in files:
            cut = (table.cut, file.cut) if table.cut else None
            durable = table.layer == "bronze"
            writer = FileWriter(self._lake.uri(table), table.schema, cut, table.tracked, durable=durable)
            for batch in read_batches(file.uri):
                rows = pa.Table.from_batches([batch])
                hit = pc.fill_null(pc.is_in(rows[layer.column], value_set=ids), False)
                writer.write(self._changed(layer, rows, hit))
            made = writer.close()
            if made.rows:
                written.append(made)
        self._lake.commit(table, written, None, removed=files, about={"reason": "erasure"})
        self._forget(table)

    def _changed(self, layer: Layer, rows: pa.Table, hit: pa.ChunkedArray) -> pa.Table:
        if layer.drop:
            return rows.filter(pc.invert(hit))
        if layer.table is LEDGER:
            quoted = pc.replace_substring_regex(
                rows["data"], r'"reason":"(?:[^"\\]|\\.)*"', f'"reason":"{ERASED}"'
            )
            data = pc.if_else(hit, quoted, rows["data"])
            return rows.set_column(rows.schema.get_field_index("data"), "data", data)
        for name, mark in layer.emptied.items():
            kind = rows.schema.field(name).type
            # Only where something stood: that there was nothing is no secret, and stays true.
            gone = pc.and_(hit, pc.is_valid(rows[name]))
            column = pc.if_else(gone, pa.scalar(mark, kind), rows[name])
            rows = rows.set_column(rows.schema.get_field_index(name), name, column)
        return rows

    def _forget(self, table: Table) -> None:
        """The old files too: until they are gone, nothing is erased."""
        with named(self._lake, table):
            self._lake.must_open(table).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
