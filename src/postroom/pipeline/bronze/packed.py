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
        """With the columns of the ledger's table; those that repeat point to their values."""
        columns: dict[str, Any] = {name: self.batch.column(name) for name in ("seq", "time", *_IDS)}
        for place, name in enumerate(REPEATED):
            columns[name] = self._each([kind[place] for kind in self._kinds])
        columns |= {name: self.batch.column(name) for name in ("data", "hash")}
        return pa.RecordBatch.from_pydict({name: columns[name] for name in LEDGER.schema.names})

    def _each(self, values: list[str | None]) -> pa.DictionaryArray:
        """A column that repeats, of its value in each kind."""
        found = pa.array(values, pa.string()).dictionary_encode()
        return pa.DictionaryArray.from_arrays(found.indices.take(self._kind), found.dictionary)

    def chained(self, previous: bytes) -> tuple[bytes, list[int]]:
        """What each event's hash is made over, after the hash before it, in one text; and where each ends.

        The first event follows `previous`. Control characters are left as they are: the kernel writes those
        otherwise, so an event that has some will not fit and be looked at again.
        """
        hashes = self.batch.column("hash")
        before = pa.concat_arrays([pa.array([previous], pa.binary()), hashes[:-1]])
        # Constants stand with what repeats where they can: each that is joined costs as much as a column.
        heads = [b"," + jsontext.encode(kind[:4])[1:-1] for kind in self._kinds]
        actors = [b"," + jsontext.encode(kind[4]) + b',"' for kind in self._kinds]
        seq, time = _number(self.batch.column("seq")), _number(self.batch.column("time"))
        whole = pc.binary_join_element_wise(
            before, b"[", seq, b",", time, pa.array(heads, pa.binary()).take(self._kind),
            *(pc.fill_null(_quoted(self.batch.column(name)), b",null") for name in _IDS),
            pa.array(actors, pa.binary()).take(self._kind), _escaped(self.batch.column("data")), b'"]', b"",
        )  # fmt: skip
        values, ends = raw(whole)
        return values.tobytes(), ends.tolist()


def raw(column: pa.Array) -> tuple[Any, Any]:
    """The bytes of a column's texts, one after the other, and where each begins and the last ends."""
    _, places, values = column.buffers()
    ends = np.frombuffer(places, np.int32)[column.offset : column.offset + len(column) + 1]
    if values is None:
        return np.empty(0, np.uint8), ends - ends[0]
    return np.frombuffer(values, np.uint8)[ends[0] : ends[-1]], ends - ends[0]


def _number(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()).cast(pa.binary())


def _quoted(column: pa.Array) -> pa.Array:
    """A column's texts as JSON has them in a list, after a comma."""
    return pc.binary_join_element_wise(b',"', _escaped(column), b'"', b"")


def _escaped(column: pa.Array) -> pa.Array:
    values, _ = raw(column)
    for mark in ("\\", '"'):
        if (values == ord(mark)).any():
            column = pc.replace_substring(column, mark, f"\\{mark}")
    return column.cast(pa.binary())
