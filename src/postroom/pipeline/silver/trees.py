"""Conversations as trees: spans under what caused them, the longest way, hand-offs, and one trace for each.

Written in whole columns of Arrow and numpy: it walks trees, which SQL cannot say, and costs the same for each
message however long its conversation is. No input or output here.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.tables import HANDOFFS, MONEY, SPANS, TRACES, Table

DEEPEST = 100
"""The longest way of a conversation is followed so far from its end, and no further."""
PORTION = 65_536


def build_trees(portions: Iterator[pa.Table]) -> Iterator[Sequence[pa.Table]]:
    """Traces, spans and hand-offs of the spans that come, sorted as `conversations.ORDER` says."""
    for rows in _whole(portions):
        yield _build(rows)


def _whole(portions: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows, so cut that no conversation is. One that is longer than a portion comes as a whole
    too."""
    kept: list[pa.Table] = []
    count = 0
    for rows in portions:
        kept.append(rows)
        count += rows.num_rows
        if count < PORTION:
            continue
        starts = np.flatnonzero(_begins(rows))
        last = int(starts[-1])
        if len(kept) > 1 and last == 0 and not _follows(kept[-2], rows):
            kept.pop()
        elif last == 0:
            continue  # all of it may belong to one conversation that goes on
        else:
            kept[-1] = rows.slice(0, last)
        yield pa.concat_tables(kept).combine_chunks()
        kept, count = [rows.slice(last)], rows.num_rows - last
    if kept:
        yield pa.concat_tables(kept).combine_chunks()


def _follows(before: pa.Table, rows: pa.Table) -> bool:
    """Whether the first row belongs to the conversation of the last one before it."""
    return all(before[name][-1].as_py() == rows[name][0].as_py() for name in ("tenant", "trace_id"))


def _begins(rows: pa.Table) -> Any:
    """Which rows are the first of their conversation."""
    begins = np.ones(rows.num_rows, bool)
    if rows.num_rows > 1:
        changed = np.zeros(rows.num_rows - 1, bool)
        for name in ("tenant", "trace_id"):
            column = pc.fill_null(rows[name].combine_chunks(), "")
            changed |= pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
        begins[1:] = changed
    return begins


class _Forest:
    """The conversations of some rows. Places are row numbers; -1 stands for none."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        begins = _begins(rows)
        self.first = np.flatnonzero(begins)
        self.number = np.cumsum(begins) - 1
        self.parent = self._parents()
        self.children = np.bincount(self.parent[self.parent >= 0], minlength=rows.num_rows)
        self.above, self.climbed = self._climb()

    def _parents(self) -> Any:
        """Where each span's cause is, if it is in the same conversation."""
        ids, causes = self.rows["span_id"].combine_chunks(), self.rows["parent_id"].combine_chunks()
        place = pc.fill_null(pc.index_in(causes, value_set=ids), -1).to_numpy(zero_copy_only=False)
        return np.where((place >= 0) & (self.number[place] == self.number), place, -1)

    def _climb(self) -> tuple[Any, list[Any]]:
        """The way from the span that ended last up to what began it: which spans are on it, and each step."""
        keys = {"number": self.number, "seen_at": self.values("seen_at"), "last_seq": self.values("last_seq")}
        ends = pc.sort_indices(
            pa.table({**keys, "span_id": self.rows["span_id"]}),
            sort_keys=[(name, "ascending") for name in (*keys, "span_id")],
        ).to_numpy()
        last = np.append(self.first[1:], len(self.number)) - 1
        here = ends[last].astype(np.int64)
        on_path = np.zeros(len(self.number), bool)
        steps = []
        while len(here):
            on_path[here] = True
            steps.append(here)
            if len(steps) > DEEPEST:
                break
            here = self.parent[here]
            here = here[here >= 0]
            here = here[~on_path[here]]
        return on_path, steps

    def path(self) -> pa.Array:
        """The ids along each longest way, the first message first."""
        places = np.concatenate(self.climbed)
        height = np.repeat(np.arange(len(self.climbed)), [len(step) for step in self.climbed])
        order = np.lexsort((-height, self.number[places]))
        lengths = np.bincount(self.number[places], minlength=len(self.first))
        return _lists(lengths, self.rows["span_id"].combine_chunks().take(pa.array(places[order])))

    def values(self, name: str) -> Any:
        """A column as whole numbers, 0 where there is nothing."""
        column = self.rows[name].combine_chunks()
        kind = pa.int8() if pa.types.is_boolean(column.type) else pa.int64()
        return pc.fill_null(column.cast(kind), 0).to_numpy(zero_copy_only=False)

    def total(self, values: Any) -> Any:
        return np.add.reduceat(values.astype(np.int64), self.first)

    def most(self, values: Any) -> Any:
        return np.maximum.reduceat(values, self.first)


def _lists(lengths: Any, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(lengths)), pa.int32()), values)


def _build(rows: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table]:
    forest = _Forest(rows)
    spans = {
        **{name: rows[name] for name in rows.schema.names},
        "children": pa.array(forest.children),
        "critical": pa.array(forest.above),
    }
    handed, count = _handoffs(forest)
    return _declared(_traces(forest, count), TRACES), _declared(spans, SPANS), _declared(handed, HANDOFFS)


def _handoffs(forest: _Forest) -> tuple[dict[str, Any], Any]:
    """Spans of an agent's inbox that another span of an agent caused; and which spans those are."""
    rows = forest.rows
    known = pa.array(forest.parent, mask=forest.parent < 0)
    giver = rows["agent"].combine_chunks().take(known)
    is_handed = pc.and_(rows["inbox"].combine_chunks(), pc.is_valid(giver))
    mask = pc.fill_null(is_handed, False)
    taken = rows.append_column("from_agent", giver).filter(mask)
    renamed = {
        "message_id": "span_id", "cause_id": "parent_id", "to_agent": "agent", "handed_at": "started_at",
        "taken_at": "claimed_at", "latency_us": "wait_us",
    }  # fmt: skip
    columns = {
        name: taken[name] for name in ("tenant", "trace_id", "from_agent", "outcome", "error_class", "day")
    }
    return columns | {name: taken[own] for name, own in renamed.items()}, mask.to_numpy(zero_copy_only=False)


def _traces(forest: _Forest, handed: Any) -> dict[str, Any]:
    rows, roots = forest.rows, pa.array(forest.first)
    outcome, seen = rows["outcome"].combine_chunks(), forest.values("seen_at")
    ended = forest.most(seen)
    began = forest.values("started_at")[forest.first]
    wait, work = (np.where(forest.above, forest.values(name), 0) for name in ("wait_us", "work_us"))
    is_open = pc.equal(outcome, "open").to_numpy(zero_copy_only=False)
    failed = pc.is_in(outcome, value_set=pa.array(["dead", "expired"])).to_numpy(zero_copy_only=False)
    root = {
        name: rows[name].combine_chunks().take(roots) for name in ("tenant", "trace_id", "channel", "day")
    }
    return {
        **root,
        "root_id": rows["span_id"].combine_chunks().take(roots),
        "agents": _agents(forest),
        "messages": forest.total(np.ones(rows.num_rows)),
        "depth": forest.most(forest.values("depth")),
        "fan_out": forest.most(forest.children),
        "handoffs": forest.total(handed),
        "open": forest.total(is_open),
        "failed": forest.total(failed),
        "started_at": rows["started_at"].combine_chunks().take(roots),
        "ended_at": pa.array(ended, pa.timestamp("us", "UTC")),
        "duration_us": pc.if_else(
            pc.is_valid(rows["started_at"].combine_chunks().take(roots)), pa.array(ended - began), None
        ),
        "critical_path": forest.path(),
        "critical_wait_us": forest.total(wait),
        "critical_work_us": forest.total(work),
        "turns": forest.total(forest.values("turns")),
        "tokens": forest.total(forest.values("tokens")),
        "cost_usd": _money(forest),
        "last_seq": forest.most(forest.values("last_seq")),
    }


def _agents(forest: _Forest) -> pa.Array:
    """Whose inboxes a conversation went through, each once, by name."""
    read = pa.table({"number": forest.number, "agent": forest.rows["agent"], "inbox": forest.rows["inbox"]})
    read = read.filter(pc.and_kleene(read["inbox"], pc.is_valid(read["agent"])))
    names = (
        read.group_by(["number", "agent"])
        .aggregate([])
        .sort_by([("number", "ascending"), ("agent", "ascending")])
    )
    lengths = np.bincount(names["number"].to_numpy(), minlength=len(forest.first))
    return _lists(lengths, names["agent"].combine_chunks())


def _money(forest: _Forest) -> pa.Array:
    spent = pa.table({"number": forest.number, "usd": forest.rows["cost_usd"]})
    sums = spent.group_by("number", use_threads=False).aggregate([("usd", "sum")]).sort_by("number")
    return pc.fill_null(sums["usd_sum"].combine_chunks().cast(MONEY), pa.scalar(Decimal(0), MONEY))


def _declared(columns: dict[str, Any], table: Table) -> pa.Table:
    arrays = {
        field.name: columns[field.name] if isinstance(columns[field.name], pa.ChunkedArray)
        else pa.array(columns[field.name])
        for field in table.schema
    }  # fmt: skip
    return pa.table(arrays).cast(table.schema)
