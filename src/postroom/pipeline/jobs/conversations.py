"""The conversations step: traces, spans and hand-offs of every conversation in which something happened.

Of a conversation that goes on, its spans say which messages it has and what their earlier turns cost, so
nothing but its own messages and the new turns is read.
"""

from collections.abc import Sequence
from datetime import date

import msgspec
import pyarrow as pa

from postroom.pipeline.jobs.context import Context, Replacement, TableWork, newer, read_columns
from postroom.pipeline.jobs.lookup import files_with, in_range, rows_with
from postroom.pipeline.jobs.progress import watched
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.lake import Lake, LakeFile, Positions
from postroom.pipeline.lake.tables import HANDOFFS, MESSAGE_LIFE, SPANS, TRACES, TURNS
from postroom.pipeline.lake.upsert import keys_of

MANY = 300_000
"""More conversations than this are not looked up one by one; then everything is built anew."""
BY = ("tenant", "trace_id")
_COUNTED = ("span_id", "turns", "tokens", "cost_usd")
_BEGAN = pa.schema([("tenant", pa.string()), ("trace_id", pa.string()), ("day", pa.date32())])


class Touched(msgspec.Struct, frozen=True):
    """The conversations that have something new: their keys, and where what is kept of them lies."""

    keys: pa.Array
    began: pa.Table
    spans: pa.Table
    messages: pa.Array
    files: dict[str, list[LakeFile]]


def converse(at: Context, target: Positions) -> None:
    works = [at.look(table) for table in (TRACES, SPANS, HANDOFFS)]
    done = Positions(min(w.done.ledger for w in works), min(w.done.records for w in works))
    if all(work.snapshot.exists and not work.anew for work in works) and done.covers(target):
        return
    with at.log.step("conversations", done.ledger, target.ledger) as step:
        touched = _touched(at, works, done)
        if touched is None:
            works = [TableWork(work.snapshot, work.snapshot.exists) for work in works]
        lives = at.lake.files(MESSAGE_LIFE)
        if touched is not None:
            lives = in_range(lives, "message_id", touched.messages)
        step.rows_in = sum(file.rows for file in lives)
        with watched(at.spark, at.told, "conversations", step.rows_in):
            step.rows_out = _replace(at, works, touched, lives, target)


def _replace(
    at: Context,
    works: Sequence[TableWork],
    touched: Touched | None,
    lives: list[LakeFile],
    target: Positions,
) -> int:
    from postroom.pipeline.silver import conversations as talk
    from postroom.pipeline.silver.trees import build_trees

    life, turns = at.frame(MESSAGE_LIFE, lives), at.frame(TURNS, at.lake.files(TURNS))
    began = None
    spent = talk.spent_on_messages(turns)
    if touched is not None:
        from pyspark.sql import functions as F

        wanted = F.broadcast(at.spark.createDataFrame(pa.table({"key": touched.keys})))
        life = life.withColumn("key", talk.key()).join(wanted, "key", "left_semi").drop("key")
        began = at.spark.createDataFrame(touched.began)
        counted = at.spark.createDataFrame(touched.spans)
        new = at.between(TURNS, "record_id", works[1].done.records, target.records)
        spent = talk.spent_on_messages(new, counted)
    spans = talk.conversation_spans(life, spent, began)
    files = touched.files if touched is not None else {}
    targets = [Replacement(work, BY, files.get(work.table.name, [])) for work in works]
    return sum(at.replace(spans, targets, target, build_trees, talk.ORDER).values())


def _touched(at: Context, works: Sequence[TableWork], done: Positions) -> Touched | None:
    """None when they are too many to look up, or nothing is kept yet: then all are made."""
    traces, spans, handoffs = works
    if not traces.files or any(work.anew for work in works):
        return None
    keys, new = find_changed(at.lake, done)
    if len(keys) > MANY:
        return None
    files: dict[str, list[LakeFile]] = {}
    began = [_BEGAN.empty_table()]
    files[TRACES.name] = []
    for file in traces.files:
        rows = rows_with(file, TRACES, BY, keys, ())
        if rows.num_rows:
            files[TRACES.name].append(file)
            day = date.fromisoformat(file.cut or "1970-01-01")
            began.append(rows.append_column("day", pa.array([day] * rows.num_rows, pa.date32())))
    kept = pa.concat_tables(began)
    days = {day.isoformat() for day in kept["day"].to_pylist()}
    if len({work.snapshot.positions for work in works}) > 1:
        # A run was broken off between their commits: spans may know more than traces do.
        days |= {file.cut or "" for work in works for file in work.files}
    files[SPANS.name], parts = [], []
    for file in spans.files:
        if file.cut in days:
            rows = rows_with(file, SPANS, BY, keys, _COUNTED)
            if rows.num_rows:
                files[SPANS.name].append(file)
                parts.append(rows)
    known = pa.concat_tables(parts) if parts else _schema(*BY, *_COUNTED).empty_table()
    files[HANDOFFS.name] = files_with([f for f in handoffs.files if f.cut in days], HANDOFFS, BY, keys)
    messages = pc.unique(pa.chunked_array([*known["span_id"].chunks, *new.chunks], pa.string()))
    return Touched(keys, kept, known.select(_COUNTED), messages, files)


def _schema(*names: str) -> pa.Schema:
    return pa.schema([SPANS.schema.field(name) for name in names])


def find_changed(lake: Lake, done: Positions) -> tuple[pa.Array, pa.ChunkedArray]:
    """Keys of conversations with new events or turns, and the messages that have new events."""
    lives = newer(lake.files(MESSAGE_LIFE), "last_seq", done.ledger)
    changed = read_columns(lives, MESSAGE_LIFE, ["tenant", "correlation_id", "message_id", "last_seq"])
    changed = changed.filter(pc.greater(changed["last_seq"], done.ledger))
    turns = newer(lake.files(TURNS), "record_id", done.records)
    taken = read_columns(turns, TURNS, ["tenant", "correlation_id", "message_id", "record_id"])
    taken = taken.filter(pc.greater(taken["record_id"], done.records))
    keys = [_keys(rows) for rows in (changed, taken)]
    return pc.unique(pa.concat_arrays(keys)).drop_null(), changed["message_id"]


def _keys(rows: pa.Table) -> pa.Array:
    named = pa.table(
        {"tenant": rows["tenant"], "trace_id": pc.coalesce(rows["correlation_id"], rows["message_id"])}
    )
    return keys_of(named.filter(pc.is_valid(named["trace_id"])), BY)
