"""The messages of conversations as spans: each with its cause, its cost, and the day its conversation is kept
under.

A conversation is known by its tenant and its id. What needs its tree is worked out in `trees`.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.tables import MONEY
from postroom.pipeline.lake.upsert import keys_of
from postroom.pipeline.silver.events import whole

KEY = ("tenant", "trace_id")
LIFE = (
    "message_id", "tenant", "scope", "queue", "agent", "channel", "hop", "parent_id", "correlation_id",
    "causation_id", "state", "outcome", "published_at", "first_claimed_at", "finished_at", "updated_at",
    "wait_us", "work_us", "error_class", "first_seq", "last_seq",
)  # fmt: skip
"""The columns of lives that are looked at here."""
SPENT = ("message_id", "turns", "tokens", "cost_usd")
_TOKENS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
TURN = ("message_id", *_TOKENS, "cost_usd")
"""The columns of turns that are looked at here."""


def conversation_keys(lives: pa.Table) -> pa.Array:
    """One text for each row by which its conversation is known."""
    talk = pc.coalesce(lives["correlation_id"], lives["message_id"])
    return keys_of(pa.table({"tenant": lives["tenant"], "trace_id": talk}), KEY)


def conversation_spans(lives: pa.Table, spent: pa.Table) -> pa.Table:
    """Messages, with the day under which their conversation is kept, and what their turns cost."""
    counted = spent.take(pc.index_in(lives["message_id"], value_set=whole(spent["message_id"])))
    queue = lives["queue"]
    columns: dict[str, Any] = {
        "tenant": lives["tenant"],
        "trace_id": pc.coalesce(lives["correlation_id"], lives["message_id"]),
        "started_at": lives["published_at"],
        "first_seq": lives["first_seq"],
        "span_id": lives["message_id"],
        "parent_id": pc.coalesce(lives["parent_id"], lives["causation_id"]),
        "name": pc.coalesce(
            pc.binary_join_element_wise(lives["scope"], queue, "/"), lives["scope"], queue, ""
        ),
        "inbox": pc.starts_with(queue, "inbox/"),
        "agent": lives["agent"],
        "channel": lives["channel"],
        "depth": pc.fill_null(lives["hop"], 0),
        "state": lives["state"],
        "outcome": lives["outcome"],
        "error_class": lives["error_class"],
        "claimed_at": lives["first_claimed_at"],
        "ended_at": lives["finished_at"],
        "seen_at": pc.coalesce(lives["finished_at"], lives["updated_at"]),
        "wait_us": lives["wait_us"],
        "work_us": lives["work_us"],
        "turns": pc.fill_null(counted["turns"], 0),
        "tokens": pc.fill_null(counted["tokens"], 0),
        "cost_usd": counted["cost_usd"],
        "last_seq": lives["last_seq"],
        "day": lives["day"],
    }
    return pa.table(columns)


def in_order(spans: pa.Table) -> pa.Table:
    """As `trees` needs them: all of a conversation together, by time, and those of one moment as in the
    ledger. What has no time comes first."""
    rows = spans.combine_chunks()
    talk = keys_of(rows, KEY).dictionary_encode().indices.to_numpy()
    began = pc.fill_null(whole(rows["started_at"]).cast(pa.int64()), np.iinfo(np.int64).min).to_numpy()
    return rows.take(pa.array(np.lexsort((whole(rows["first_seq"]).to_numpy(), began, talk))))


def spent_on_messages(turns: pa.Table, known: pa.Table | None = None) -> pa.Table:
    """Turns, tokens and money by message. `known` are spans that have counted earlier turns already."""
    taken = turns.filter(pc.is_valid(turns["message_id"]))
    tokens = taken[_TOKENS[0]]
    for name in _TOKENS[1:]:
        tokens = pc.add(tokens, taken[name])
    ones = pa.array(np.ones(taken.num_rows, np.int64))
    columns: list[Any] = [taken["message_id"], ones, tokens.cast(pa.int64()), taken["cost_usd"]]
    rows = pa.table(dict(zip(SPENT, columns, strict=True)))
    if known is not None:
        counted = known.filter(pc.greater(known["turns"], 0)).select(["span_id", *SPENT[1:]])
        rows = pa.concat_tables([rows, counted.rename_columns(list(SPENT)).cast(rows.schema)])
    sums = rows.group_by("message_id", use_threads=False).aggregate([(name, "sum") for name in SPENT[1:]])
    sums = sums.select(["message_id", *(f"{name}_sum" for name in SPENT[1:])]).rename_columns(list(SPENT))
    return sums.set_column(3, "cost_usd", sums["cost_usd"].cast(MONEY))
