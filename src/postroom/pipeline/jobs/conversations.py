"""The conversations step: traces, spans and hand-offs of every conversation in which something happened.

Of a conversation that goes on, its spans say which messages it has and what their earlier turns cost, so
nothing but its own messages and the new turns is read.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from postroom.pipeline.jobs.context import Context, TableWork, in_portions, newer, read_columns
from postroom.pipeline.jobs.conversation_tasks import (
    MOVED,
    DayTasks,
    GatherLifeSpans,
    GatherSpans,
    SpanTasks,
    SpentTasks,
    gather_days,
)
from postroom.pipeline.jobs.progress import watched
from postroom.pipeline.jobs.results import StepResults, read_results
from postroom.pipeline.jobs.workers import ROWS_PER_PIECE, Workers
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.lake import Lake, LakeFile, Positions
from postroom.pipeline.lake.tables import HANDOFFS, MESSAGE_LIFE, SPANS, TRACES, TURNS, Table
from postroom.pipeline.lake.upsert import in_range, keys_of
from postroom.pipeline.silver import conversations as talk
from postroom.pipeline.silver.events import days_of, whole

MANY = 300_000
"""More conversations than this are not looked up one by one; then everything is built anew."""
ROWS_PER_TASK = 100_000
_COUNTED = ("span_id", "turns", "tokens", "cost_usd")


class Changed(msgspec.Struct, frozen=True):
    """Conversations in which something happened: their keys, their ids alone, and the messages that have new
    events, each with the key of its conversation."""

    keys: pa.Array
    traces: pa.Array
    messages: Any


class Touched(msgspec.Struct, frozen=True):
    """The conversations that have something new: their keys and days, their messages, and what these cost."""

    moved: Any
    messages: pa.Array
    spent: Any


def converse(at: Context, target: Positions) -> None:
    works = [at.look(table) for table in (TRACES, SPANS, HANDOFFS)]
    done = Positions(min(w.done.ledger for w in works), min(w.done.records for w in works))
    if all(work.snapshot.exists and not work.anew for work in works) and done.covers(target):
        return
    with at.log.step("conversations", done.ledger, target.ledger) as step:
        touched = _touched(at, works, done)
        lives = sorted(at.lake.files(MESSAGE_LIFE), key=lambda file: file.cut or "")
        if touched is None:
            works = [TableWork(work.snapshot, work.snapshot.exists) for work in works]
        else:
            lives = in_range(lives, "message_id", touched.messages)
        step.rows_in = sum(file.rows for file in lives)
        workers = at.crew.of(step.rows_in)
        with watched(workers, at.told, "conversations", step.rows_in):
            if touched is None:
                results = build_all(at, workers, works, lives)
            else:
                tasks = SpanTasks(
                    lives=in_portions(lives, ROWS_PER_TASK),
                    moved=touched.moved,
                    spent=touched.spent,
                )
                gather = GatherSpans([work.target() for work in works])
                results = read_results(workers.collect(tasks, len(tasks.lives), gather, rows=step.rows_in))
            at.commit_results(works, results, target)
        step.rows_out = results.rows(TRACES.name)


def build_all(
    at: Context,
    workers: Workers,
    works: Sequence[TableWork],
    lives: list[LakeFile],
    days: frozenset[str] | None = None,
) -> StepResults:
    """All conversations, or those of some days, in the place of nothing. First it is found out which have
    messages of several days."""
    rows = sum(file.rows for file in lives)
    seen = DayTasks(in_portions(lives, ROWS_PER_TASK), -(-rows // ROWS_PER_PIECE) or 1)
    moved = [table for _, table in workers.collect(seen, len(seen.lives), gather_days, rows=rows)]
    if days is not None:
        # Nothing of a conversation is from before its day.
        lives = [file for file in lives if (file.cut or "") >= min(days)]
    counted: dict[str, int] = {}
    for file in lives:
        counted[file.cut or ""] = counted.get(file.cut or "", 0) + file.rows
    named = {str(number): file for number, file in enumerate(lives)}
    spent = SpentTasks(named, in_portions(at.lake.files(TURNS), ROWS_PER_TASK))
    gather_life_spans = GatherLifeSpans(
        lives=named,
        moved=pa.concat_tables([*moved, MOVED.empty_table()]),
        days=days,
        slots={day: -(-count // ROWS_PER_PIECE) for day, count in counted.items()},
    )
    gather_spans = GatherSpans([work.target([]) for work in works])
    return read_results(
        workers.collect(spent, 1 + len(spent.turns), gather_life_spans, gather_spans, rows=rows)
    )


def _touched(at: Context, works: Sequence[TableWork], done: Positions) -> Touched | None:
    """None when they are too many to look up, or nothing is kept yet: then all are made."""
    traces, spans, _ = works
    if not traces.files or any(work.anew for work in works):
        return None
    changed = find_changed(at.lake, done)
    if len(changed.keys) > MANY:
        return None
    kept = _rows_with(traces.files, TRACES, ("day",), changed)
    began = pa.table({"key": keys_of(kept, talk.KEY), "day": kept["day"]})
    days = {day.isoformat() for day in pc.unique(began["day"]).to_pylist()}
    if len({work.snapshot.positions for work in works}) > 1:
        # A run was broken off between their commits: spans may know more than traces do.
        days |= {file.cut or "" for work in works for file in work.files}
    known = _rows_with([file for file in spans.files if file.cut in days], SPANS, _COUNTED, changed)
    messages = pa.concat_tables(
        [changed.messages, pa.table({"key": keys_of(known, talk.KEY), "message_id": known["span_id"]})]
    )
    ids = whole(messages["message_id"])
    turns = newer(at.lake.files(TURNS), "record_id", spans.done.records)
    taken = read_columns(turns, TURNS, [*talk.TURN, "record_id"])
    taken = taken.filter(pc.greater(taken["record_id"], spans.done.records))
    first = (
        pa.table({"key": messages["key"], "day": days_of(ids)}).group_by("key").aggregate([("day", "min")])
    )
    first = first.rename_columns({"day_min": "day"}).select(MOVED.names)
    # Where it is kept comes first: what is looked up is the first that is found.
    return Touched(
        pa.concat_tables([began, first.cast(MOVED)]), pc.unique(ids), talk.spent_on_messages(taken, known)
    )


def _rows_with(files: list[LakeFile], table: Table, columns: Sequence[str], changed: Changed) -> pa.Table:
    """The rows of files that are about one of these conversations."""
    named = pc.field("trace_id").isin(changed.traces)
    rows = read_columns(files, table, [*talk.KEY, *columns], named)
    return rows.filter(pc.is_in(keys_of(rows, talk.KEY), value_set=changed.keys))


def find_changed(lake: Lake, done: Positions) -> Changed:
    """Conversations with new events or turns."""
    names = ["tenant", "correlation_id", "message_id"]
    lives = newer(lake.files(MESSAGE_LIFE), "last_seq", done.ledger)
    changed = read_columns(lives, MESSAGE_LIFE, [*names, "last_seq"])
    changed = changed.filter(pc.greater(changed["last_seq"], done.ledger)).select(names)
    turns = newer(lake.files(TURNS), "record_id", done.records)
    taken = read_columns(turns, TURNS, [*names, "record_id"])
    taken = taken.filter(pc.greater(taken["record_id"], done.records)).select(names)
    # A turn may be about no message at all.
    taken = taken.filter(pc.or_(pc.is_valid(taken["correlation_id"]), pc.is_valid(taken["message_id"])))
    both = pa.concat_tables([changed, taken])
    return Changed(
        pc.unique(talk.conversation_keys(both)),
        pc.unique(pc.coalesce(both["correlation_id"], both["message_id"])),
        pa.table({"key": talk.conversation_keys(changed), "message_id": changed["message_id"]}),
    )
