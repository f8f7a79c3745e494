"""A generated fortnight as years of events: executors make the copies while they read, no disk has to hold
the store. Hashes are those of the first copy, so a run over it must take them on trust."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from postroom.pipeline.lake.compute import pc
from postroom.pipeline.sources.sqlite import Snapshot, SqliteSource

_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-"
_IDS = ("id", "message_id", "correlation_id", "causation_id", "parent_id")
_TIMES = ("time", "created_at", "updated_at", "finished_at", "expires_at")
_TURN = r'^(?P<a>.*"started_at":)(?P<began>\d+)(?P<b>,"ended_at":)(?P<ended>\d+)(?P<c>.*)$'
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_PLACES = np.array([0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12])
"""Where the twelve digits of the time stand in the text of an id."""


class Repeated(SqliteSource, frozen=True):
    """Copies of a store, one after the other in time, cut off at an event."""

    events: int = 0
    messages: int = 0
    records_: int = 0
    span_us: int = 0
    head: int = 0

    def snapshot(self) -> Snapshot:
        return Snapshot(self.head, self.hash_of(self.head) or b"", 0, self._record_at(self.head), 0)

    def hash_of(self, seq: int) -> bytes | None:
        return super().hash_of((seq - 1) % self.events + 1 if seq else 0)

    def packed(self, after: int, up_to: int) -> Iterator[pa.RecordBatch]:
        return self._copies(super().packed, self.events, after, up_to)

    def ended(self, after: int, up_to: int) -> Iterator[pa.RecordBatch]:
        return self._copies(super().ended, self.events, after, up_to)

    def records(self, after: int, up_to: int, wanted: Any = ()) -> Iterator[pa.RecordBatch]:
        return self._copies(super().records, self.records_, after, up_to)

    def _record_at(self, seq: int) -> int:
        copies, rest = divmod(seq, self.events)
        if not rest:
            return copies * self.records_
        with self._look() as db:
            [(time,)] = db.execute("SELECT time FROM ledger WHERE seq = ?", (rest,))
        return copies * self.records_ + self.record_before(time)

    def _copies(
        self, read: Callable[[int, int], Iterator[pa.RecordBatch]], size: int, after: int, up_to: int
    ) -> Iterator[pa.RecordBatch]:
        for number in range(after // size, -(-up_to // size)):
            low, high = max(after - number * size, 0), min(up_to - number * size, size)
            yield from map(partial(self._move, number), read(low, high))

    def _move(self, number: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Later in time, with numbers that go on, and with names that no other copy has."""
        if not number or not batch.num_rows:
            return batch
        shift = number * self.span_us
        columns: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
        is_record = "kind" in columns
        for name in _IDS:
            if name in columns and not (is_record and name == "id"):
                columns[name] = move_ids(columns[name], number, shift // 1000)
        for name in _TIMES:
            if name in columns:
                columns[name] = pc.add(columns[name], shift)
        if is_record:
            columns["id"] = pc.add(columns["id"], number * self.records_)
            columns["key"] = _suffixed(columns["key"], number)
            columns["data"] = _move_turns(columns["data"], shift)
        elif "ended_seq" in columns:
            columns["seq"] = pc.add(columns["seq"], number * self.messages)
            columns["ended_seq"] = pc.add(columns["ended_seq"], number * self.events)
            columns["idempotency_key"] = _suffixed(columns["idempotency_key"], number)
        else:
            columns["seq"] = pc.add(columns["seq"], number * self.events)
        return pa.RecordBatch.from_pydict(columns)


def repeated(path: str, head: int) -> Repeated:
    """As many copies of a store as it takes to come to this event."""
    plain = SqliteSource(path)
    found, day = plain.snapshot(), 86_400_000_000
    with plain._look() as db:
        [(first, last)] = db.execute("SELECT min(time), max(time) FROM ledger")
    span = ((last - first) // day + 1) * day
    return Repeated(path, found.head, found.messages, found.records, span, head)


def move_ids(column: pa.Array, number: int, shift_ms: int) -> pa.Array:
    """Ids that tell their time tell the later one; names get a mark."""
    timed = pc.fill_null(pc.match_substring_regex(column, _UUID), False)
    if not pc.any(timed).as_py():
        return _suffixed(column, number)
    ids = column.filter(timed).cast(pa.binary(36))
    text = np.frombuffer(ids.buffers()[1], np.uint8)[ids.offset * 36 : (ids.offset + len(ids)) * 36]
    text = text.reshape(-1, 36).copy()
    digits = text[:, _PLACES]
    values = np.where(digits > ord("9"), digits - 87, digits - 48).astype(np.int64)
    weights = 16 ** np.arange(11, -1, -1, dtype=np.int64)
    moments = values @ weights + shift_ms
    text[:, _PLACES] = _DIGITS[(moments[:, None] // weights) % 16]
    moved = pa.Array.from_buffers(pa.binary(36), len(ids), [None, pa.py_buffer(text.tobytes())])
    moved = moved.cast(pa.binary()).cast(pa.string())
    return pc.replace_with_mask(_suffixed(column, number), timed, moved)


def _suffixed(column: pa.Array, number: int) -> pa.Array:
    return pc.binary_join_element_wise(column, f"~{number}", "")


def _move_turns(column: pa.Array, shift: int) -> pa.Array:
    """The times of a turn stand in its words."""
    found = pc.extract_regex(column, _TURN)
    parts = {name: pc.struct_field(found, name) for name in ("a", "began", "b", "ended", "c")}
    for name in ("began", "ended"):
        parts[name] = pc.add(parts[name].cast(pa.int64()), shift).cast(pa.string())
    return pc.coalesce(pc.binary_join_element_wise(*parts.values(), ""), column)
