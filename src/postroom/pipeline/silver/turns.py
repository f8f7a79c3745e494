"""One row per turn of an agent, from the record the office keeps of it: outcome, tokens, money."""

from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.tables import MONEY, TURNS
from postroom.pipeline.silver.events import LATEST_US, whole
from postroom.pipeline.silver.json_columns import open_json

NEEDED = ("id", "tenant", "kind", "key", "data", "correlation_id", "message_id", "created_at")
"""The columns of records that are looked at here."""
COUNTS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
_USAGE = pa.struct(
    [("provider", pa.string()), ("model", pa.string()), *((name, pa.int64()) for name in COUNTS)]
)
_TURN = pa.schema(
    [
        ("agent", pa.string()),
        ("outcome", pa.string()),
        ("cause", pa.string()),
        ("started_at", pa.int64()),
        ("ended_at", pa.int64()),
        ("usage", pa.list_(_USAGE)),
        ("cost_usd", pa.string()),
        ("price_source", pa.string()),
    ]
)
_TIME = pa.timestamp("us", "UTC")


def turns(records: pa.Table) -> pa.Table:
    """Tokens of all models of a turn are added up; the turn is named after the last that worked on it."""
    found = records.filter(pc.equal(records["kind"], "turn")).combine_chunks()
    turn = open_json(whole(found["data"]), _TURN)
    usage = whole(turn["usage"])
    ended = pc.coalesce(_moment(turn["ended_at"]), found["created_at"])
    began = _moment(turn["started_at"])
    length = pc.subtract(ended, began)
    last = _last(usage)
    columns: dict[str, Any] = {
        "record_id": found["id"],
        "turn_id": found["key"],
        "tenant": found["tenant"],
        "agent": pc.fill_null(turn["agent"], "unknown"),
        "message_id": found["message_id"],
        "correlation_id": found["correlation_id"],
        "outcome": pc.fill_null(turn["outcome"], "unknown"),
        "cause": turn["cause"],
        "provider": pc.fill_null(pc.struct_field(last, "provider"), "unknown"),
        "model": pc.fill_null(pc.struct_field(last, "model"), "unknown"),
        "started_at": began.cast(_TIME),
        "ended_at": ended.cast(_TIME),
        "duration_us": pc.if_else(pc.greater_equal(length, 0), length, None),
        **{name: _total(usage, name) for name in COUNTS},
        "cost_usd": _money(whole(turn["cost_usd"])),
        "price_source": turn["price_source"],
        "day": ended.cast(_TIME).cast(pa.date32()),
    }
    return pa.table({name: columns[name] for name in TURNS.schema.names}).cast(TURNS.schema)


def _moment(micros: pa.ChunkedArray) -> pa.ChunkedArray:
    """A time that no calendar has is none."""
    return pc.if_else(pc.less_equal(pc.abs(micros), LATEST_US), micros, None)


def _last(usage: pa.ListArray) -> pa.Array:
    """The last item of each list, or nothing."""
    lengths = pc.fill_null(pc.list_value_length(usage), 0).to_numpy()
    place = np.cumsum(lengths) - 1
    return usage.flatten().take(pa.array(place, mask=lengths == 0))


def _total(usage: pa.ListArray, name: str) -> Any:
    values = pc.fill_null(pc.struct_field(usage.flatten(), name), 0).to_numpy()
    # Where each list ends, the sum so far less that of the lists before it is its own.
    ends = np.cumsum(pc.fill_null(pc.list_value_length(usage), 0).to_numpy())
    so_far = np.append(0, np.cumsum(values))[np.append(0, ends)]
    return np.diff(so_far)


def _money(texts: pa.Array) -> pa.Array:
    try:
        return texts.cast(MONEY)
    except pa.ArrowInvalid:
        return pa.array([_price(text) for text in texts.to_pylist()], MONEY)


def _price(text: str | None) -> Decimal | None:
    """Rounded to what the lake can hold; nothing, when it is no number or too large a one."""
    try:
        return None if text is None else Decimal(text.strip()).quantize(Decimal(1).scaleb(-MONEY.scale))
    except InvalidOperation:
        return None
