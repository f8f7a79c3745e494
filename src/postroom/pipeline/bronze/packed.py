"""Events as they come from the store for bronze: the columns that repeat are packed into one.

Handing values from SQLite to Arrow is what a read costs, value by value. A few dozen kinds of event make up a
ledger, so they come as one text each and are opened once per kind, not once per event.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from postroom.kernel import jsontext
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.tables import LEDGER

REPEATED = ("type", "tenant", "scope", "queue", "actor")
_IDS = ("message_id", "correlation_id", "causation_id")


class Packed:
    """A batch of `SqliteSource.packed`, to be opened or to be put into the words hashes are made over."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        kinds = pc.dictionary_encode(batch.column("repeated"))
        self._kind = kinds.indices
        self._kinds = [jsontext.decode(text) for text in kinds.dictionary.to_pylist()]

    def opened(self) -> pa.RecordBatch:
        """With the columns of the ledger's table."""
        columns: dict[str, Any] = {name: self.batch.column(name) for name in ("seq", "time", *_IDS)}
        for place, name in enumerate(REPEATED):
            columns[name] = pa.array([kind[place] for kind in self._kinds], pa.string()).take(self._kind)
        columns |= {name: self.batch.column(name) for name in ("data", "hash")}
        return pa.RecordBatch.from_pydict({name: columns[name] for name in LEDGER.schema.names})

    def chained(self, previous: bytes) -> tuple[memoryview, list[int]]:
        """What each event's hash is made over, after the hash before it, in one text; and where each ends.

        The first event follows `previous`. Control characters are left as they are: the kernel writes those
        otherwise, so an event that has some will not fit and be looked at again.
        """
        hashes = self.batch.column("hash")
        before = pa.concat_arrays([pa.array([previous], pa.binary()), hashes[:-1]])
        heads = [jsontext.encode(kind[:4])[1:-1] for kind in self._kinds]
        actors = [jsontext.encode(kind[4]) for kind in self._kinds]
        pieces: list[Any] = [before, b"[", _number(self.batch.column("seq")), b","]
        pieces += [_number(self.batch.column("time")), b",", pa.array(heads, pa.binary()).take(self._kind)]
        for name in _IDS:
            pieces += [b",", *_quoted(self.batch.column(name))]
        pieces += [b",", pa.array(actors, pa.binary()).take(self._kind), b","]
        pieces += [*_quoted(self.batch.column("data")), b"]"]
        whole = pc.binary_join_element_wise(*_merged(pieces), b"")
        values, ends = raw(whole)
        return memoryview(values), ends.tolist()


def raw(column: pa.Array) -> tuple[Any, Any]:
    """The bytes of a column's texts, one after the other, and where each begins and the last ends."""
    _, places, values = column.buffers()
    ends = np.frombuffer(places, np.int32)[column.offset : column.offset + len(column) + 1]
    if values is None:
        return np.empty(0, np.uint8), ends - ends[0]
    return np.frombuffer(values, np.uint8)[ends[0] : ends[-1]], ends - ends[0]


def _number(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()).cast(pa.binary())


def _merged(pieces: list[Any]) -> list[Any]:
    """Constants that stand side by side as one."""
    merged: list[Any] = []
    for piece in pieces:
        if isinstance(piece, bytes) and merged and isinstance(merged[-1], bytes):
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged


def _quoted(column: pa.Array) -> list[Any]:
    """A column's texts as JSON has them: what to join in its place."""
    if column.null_count == len(column):
        return [b"null"]
    values, _ = raw(column)
    for mark in ("\\", '"'):
        if (values == ord(mark)).any():
            column = pc.replace_substring(column, mark, f"\\{mark}")
    plain = column.cast(pa.binary())
    if not column.null_count:
        return [b'"', plain, b'"']
    return [pc.fill_null(pc.binary_join_element_wise(b'"', plain, b'"', b""), b"null")]
