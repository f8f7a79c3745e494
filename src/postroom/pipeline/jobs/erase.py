"""Erasing messages from every layer of the lake, down to the files. Asking again does no harm.

What is left says that there was a message, when, and how it ended; nothing of what anybody wrote.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from postroom.clock import Clock, SystemClock
from postroom.kernel import jsontext, webhooks
from postroom.kernel.erasure.subject import ERASED, Subject
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.files import FileWriter
from postroom.pipeline.lake.lake import Lake, LakeFile, named
from postroom.pipeline.lake.lease import hold_lease
from postroom.pipeline.lake.reading import read_batches, read_declared
from postroom.pipeline.lake.tables import (
    CHUNKS,
    FAILURE_CAUSES,
    LEDGER,
    MESSAGE_LIFE,
    MESSAGES,
    QUARANTINE,
    RECORDS,
    Table,
)

_EMPTIED = '{"erased":true}'


class Layer(msgspec.Struct, frozen=True):
    """A table, the column that names a message, what is taken out, and which column shows that it was."""

    table: Table
    column: str
    emptied: dict[str, str | None]
    drop: bool = False


LAYERS = (
    Layer(RECORDS, "message_id", {"data": _EMPTIED}),
    Layer(LEDGER, "message_id", {}),
    Layer(MESSAGE_LIFE, "message_id", {"error_reason": ERASED}),
    Layer(FAILURE_CAUSES, "example_id", {"example_reason": ERASED}),
    Layer(QUARANTINE, "key", {"row": _EMPTIED}),
    Layer(CHUNKS, "message_id", {}, drop=True),
    # Last: it says which messages are meant, and must do so until all others are done.
    Layer(
        MESSAGES,
        "id",
        {
            "body": _EMPTIED, "body_bytes": None, "labels": None, "metadata": None, "files": None,
            "result": None, "failure_reason": ERASED, "source_id": None, "sender": None, "sender_id": None,
            "idempotency_key": None,
        },
    ),
)  # fmt: skip


class LakeEraser:
    """What the room's erasure asks of a lake."""

    def __init__(self, lake: Lake, clock: Clock | None = None) -> None:
        self._lake = lake
        self._clock = clock or SystemClock()

    async def search(self, tenant: str, scope: str, subject: Subject, queues: list[str] | None) -> list[str]:
        return await asyncio.to_thread(self.find, subject, tenant, scope, queues)

    async def preview(self, tenant: str, message_ids: list[str]) -> int:
        return await asyncio.to_thread(self.count, message_ids)

    async def erase(self, tenant: str, message_ids: list[str]) -> int:
        return await asyncio.to_thread(self.carry_out, message_ids)

    def find(
        self,
        subject: Subject,
        tenant: str | None = None,
        scope: str | None = None,
        queues: list[str] | None = None,
    ) -> list[str]:
        """Messages of the lake that are about a subject, also those that the hot store no longer has."""
        from postroom.pipeline.serving.engine import engine

        place, _, path = subject.field.partition(".")
        with engine(self._lake) as light:
            if not light.has("messages"):
                return []
            column = MESSAGES.schema.field(place).name
            narrowed = [(name, value) for name, value in (("tenant", tenant), ("scope", scope)) if value]
            inside = "".join(f" AND {name} = ?" for name, _ in narrowed)
            values: list[Any] = [value for _, value in narrowed]
            if queues is not None:
                inside += " AND list_contains(?, queue) AND list_contains(?, coalesce(origin_queue, queue))"
                values += [queues, queues]
            if not path:
                sql = f"SELECT DISTINCT id FROM messages WHERE {column} = ?{inside} ORDER BY id"  # noqa: S608 - columns
                return [row["id"] for row in light.rows(sql, [subject.value, *values])]
            steps = [path] if place == "labels" else path.split(".")
            sql = f"SELECT id, {column} AS text FROM messages WHERE contains({column}, ?){inside}"  # noqa: S608 - columns
            rows = light.rows(sql, [jsontext.text(steps[-1]), *values])
        return sorted({row["id"] for row in rows if _leads_to(_opened(row["text"]), steps, subject.value)})

    def count(self, message_ids: Sequence[str]) -> int:
        ids = self._with_echoes(message_ids)
        return sum(self._concerned(layer, ids)[1] for layer in LAYERS)

    def carry_out(self, message_ids: Sequence[str]) -> int:
        changed = 0
        with hold_lease(self._lake, self._clock):
            ids = self._with_echoes(message_ids)
            for layer in LAYERS:
                files, rows = self._concerned(layer, ids)
                if rows:
                    self._rewrite(layer, files, ids)
                    changed += rows
                # Also without rows: versions of before, and files of runs that were killed, may hold some.
                self._forget(layer.table)
        return changed

    def _with_echoes(self, message_ids: Sequence[str]) -> pa.Array:
        """Also what was told to others of these messages, which says the same in other words."""
        about = set(message_ids)
        ids = dict.fromkeys(message_ids)
        kinds = pa.array([webhooks.MESSAGE, *webhooks.EVENTS])
        for file in self._lake.files(MESSAGES):
            for rows in read_batches(file.uri, ["id", "message_type", "causation_id", "labels"]):
                echoes = rows.filter(pc.is_in(rows.column("message_type"), value_set=kinds))
                ids |= {row["id"]: None for row in echoes.to_pylist() if _told_of(row) in about}
        return pa.array(ids, pa.string())

    def _concerned(self, layer: Layer, ids: pa.Array) -> tuple[list[LakeFile], int]:
        """Files that hold something of these messages which is to go, and how many rows that is."""
        files, rows = [], 0
        for file in self._lake.files(layer.table):
            count = 0
            for table in read_declared(file.uri, layer.table.schema):
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
            erased = pc.match_substring(table["data"], f'"reason":"{ERASED}"')
            return pc.and_not(pc.match_substring(table["data"], '"reason":"'), erased)
        left = pa.chunked_array([pa.array([False] * table.num_rows)])
        for name, mark in layer.emptied.items():
            column = table[name]
            full = pc.is_valid(column)
            if mark is not None:
                full = pc.and_(full, pc.fill_null(pc.not_equal(column, mark), False))
            left = pc.or_(left, full)
        return left

    def _rewrite(self, layer: Layer, files: list[LakeFile], ids: pa.Array) -> None:
        table = layer.table
        written = []
        for file in files:
            cut = (table.cut, file.cut) if table.cut else None
            durable = table.layer == "bronze"
            writer = FileWriter(self._lake.uri(table), table.schema, cut, table.tracked, durable=durable)
            for rows in read_declared(file.uri, table.schema):
                hit = pc.fill_null(pc.is_in(rows[layer.column], value_set=ids), False)
                writer.write(self._changed(layer, rows, hit))
            made = writer.close()
            if made.rows:
                written.append(made)
        self._lake.commit(table, written, None, removed=files, about={"reason": "erasure"})

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
        self._lake.fence(table)
        found = self._lake.open(table)
        if found is None:
            return
        with named(self._lake, table):
            found.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)


def _told_of(row: dict[str, Any]) -> str | None:
    """The message that a delivery of a webhook, or an event for subscribers, tells of."""
    if row["message_type"] == webhooks.MESSAGE:
        return (_opened(row["labels"]) or {}).get("about")
    return row["causation_id"]


def _opened(text: str | None) -> Any:
    try:
        return None if text is None else jsontext.decode(text)
    except msgspec.DecodeError:
        return None  # no JSON, or a secret was cut out of it


def _leads_to(part: Any, steps: list[str], value: Any) -> bool:
    """A path goes through every item of a list. Numbers may be asked for as they are written."""
    if isinstance(part, list):
        return any(_leads_to(item, steps, value) for item in part)
    if not steps:
        return _written(part) == _written(value)
    return isinstance(part, dict) and steps[0] in part and _leads_to(part[steps[0]], steps[1:], value)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else jsontext.text(value)
