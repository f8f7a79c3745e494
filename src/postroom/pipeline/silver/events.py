"""Ledger events with their data opened, as the other transforms need them."""

import numpy as np
import pyarrow as pa

from postroom.kernel.states import Change, State
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.silver.json_columns import open_json

STATES = tuple(state.value for state in State)
CHANGES = tuple(change.value for change in Change)
NEEDED = (
    "seq", "time", "type", "tenant", "scope", "queue", "message_id", "correlation_id", "causation_id",
    "actor", "data",
)  # fmt: skip
"""The columns of the ledger that are looked at here."""

FIELDS = pa.schema(
    [
        ("state", pa.string()),
        ("attempts", pa.int32()),
        ("type", pa.string()),
        ("tier", pa.string()),
        ("bytes", pa.int64()),
        ("hop", pa.int32()),
        ("parent", pa.string()),
        ("agent", pa.string()),
        ("channel", pa.string()),
        ("subscription", pa.int64()),
        ("reason", pa.string()),
        ("kind", pa.string()),
        ("from", pa.string()),
    ]
)
OPENED = "data."
_HEX = np.full(256, 0, np.int64)
_HEX[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_DIGITS = [*range(8), *range(9, 13)]
_DAY_MS = 86_400_000
LATEST_US = 253_402_300_799_999_999
"""The end of the year 9999: no calendar of Python's goes further."""


def message_events(ledger: pa.Table) -> pa.Table:
    """Events about messages, each field of their data as a column `data.…` of its own."""
    about = pc.and_(pc.starts_with(ledger["type"], "message."), pc.is_valid(ledger["message_id"]))
    events = ledger.filter(about).combine_chunks()
    opened = open_json(whole(events["data"]), FIELDS)
    for name in FIELDS.names:
        events = events.append_column(f"{OPENED}{name}", opened[name])
    return events.drop_columns(["data"])


def whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def problems(events: pa.Table) -> pa.Array:
    """Why an event about a message cannot be used; null where it can."""
    state, kind = whole(events["data.state"]), whole(events["type"])
    unknown = pc.invert(pc.is_in(kind, value_set=pa.array(CHANGES)))
    odd = pc.invert(pc.is_in(state, value_set=pa.array(STATES)))
    return pc.case_when(
        pc.make_struct(unknown, pc.is_null(state), odd),
        pc.binary_join_element_wise("unknown event type ", kind, ""),
        "its data cannot be read",
        pc.binary_join_element_wise("unknown state ", state, ""),
    )


def days_of(message_ids: pa.Array) -> pa.Array:
    """Each message's day, from its id, which begins with the time of publishing. Foreign ids get day zero,
    and so do times that no calendar has."""
    known = pc.fill_null(pc.match_substring_regex(message_ids, r"^[0-9a-f]{8}-[0-9a-f]{4}-7"), False)
    days = np.zeros(len(message_ids), np.int32)
    heads = pc.binary_slice(message_ids.filter(known).cast(pa.binary()), 0, 13).cast(pa.binary(13))
    if len(heads):
        begin = heads.offset * 13
        text = np.frombuffer(heads.buffers()[1], np.uint8)[begin : begin + len(heads) * 13].reshape(-1, 13)
        moments = _HEX[text[:, _DIGITS]] @ (16 ** np.arange(11, -1, -1, dtype=np.int64))
        told = np.where(moments <= LATEST_US // 1000, moments // _DAY_MS, 0)
        days[known.to_numpy(zero_copy_only=False)] = told
    return pa.array(days).cast(pa.date32())
