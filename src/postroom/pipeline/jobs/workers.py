"""Who carries out the tasks of a step: Spark's executors, or this process itself where one task is all there
is.

A task is handed a number and makes parcels, which are tables with a key. Parcels go back to the step, or are
exchanged first, so that all parcels of a key meet in one place. What tasks do with columns is none of Spark's
business: it moves each parcel as one value, and has no rows to plan, to compile for or to convert.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Parcel = tuple[str, pa.Table]
Task = Callable[[int], Iterable[Parcel]]
Gather = Callable[[str, list[pa.Table]], Iterable[Parcel]]
"""Is handed all parcels of one key, in any order."""

PIECES = "spark.sql.shuffle.partitions"
ROWS_PER_PIECE, LEAST_PER_PIECE = 500_000, 25_000
"""So many rows are gathered in one place at a time, at most and at least."""
_PARCELS = "key string, data binary"
_SCHEMA = pa.schema([("key", pa.string()), ("data", pa.binary())])
_WAYS = pa.ipc.IpcWriteOptions(compression="lz4")


class Workers(Protocol):
    def collect(self, task: Task, count: int, *gather: Gather, rows: int = 0) -> list[Parcel]:
        """What the tasks with the numbers from 0 make; with `gather`, what is made of all parcels of each
        key, and so on. `rows` is about how many are exchanged."""
        ...


class LocalWorkers:
    """Threads of this process: what takes time in a task waits for no other."""

    def collect(self, task: Task, count: int, *gather: Gather, rows: int = 0) -> list[Parcel]:
        with ThreadPoolExecutor(os.cpu_count() or 1, "worker") as pool:
            made = pool.map(lambda number: list(task(number)), range(count))
            for each in gather:
                found: dict[str, list[pa.Table]] = {}
                for key, table in chain.from_iterable(made):
                    found.setdefault(key, []).append(table)
                made = pool.map(lambda one, each=each: list(each(*one)), sorted(found.items()))
            last = list(chain.from_iterable(made))
        _rest()
        return last


class SparkWorkers:
    """Executors, however many there are. A task that fails is repeated where Spark is told to."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark

    @property
    def context(self) -> Any:
        """That of a driver in this process, which can be asked how far its jobs are; else None."""
        return getattr(self._spark, "_sc", None)

    def collect(self, task: Task, count: int, *gather: Gather, rows: int = 0) -> list[Parcel]:
        made = self._spark.range(0, count, 1, max(1, count)).mapInArrow(partial(_carried_out, task), _PARCELS)
        usual = int(self._spark.conf.get(PIECES) or 1)
        pieces = max(1, min(usual, rows // LEAST_PER_PIECE), rows // ROWS_PER_PIECE)
        for each in gather:
            made = made.repartition(pieces, "key").mapInArrow(partial(_gathered, each), _PARCELS)
        return _unpacked(made.toArrow())


def _carried_out(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from map(_packed, task(number))
    _rest()


def _gathered(gather: Gather, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found: dict[str, list[pa.Scalar]] = {}
    for batch in batches:
        for key, data in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            found.setdefault(key, []).append(data)
    for key in sorted(found):
        yield from map(_packed, gather(key, [_opened(data) for data in found.pop(key)]))
    _rest()


def _rest() -> None:
    """A worker that waits for its next task keeps no memory that others could use."""
    pa.default_memory_pool().release_unused()


def _packed(parcel: Parcel) -> pa.RecordBatch:
    key, table = parcel
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_WAYS) as stream:
        stream.write_table(table)
    held = sink.getvalue()
    ends = pa.array([0, held.size], pa.int32()).buffers()[1]
    data = pa.Array.from_buffers(pa.binary(), 1, [None, ends, held])
    return pa.RecordBatch.from_arrays([pa.array([key]), data], schema=_SCHEMA)


def _opened(data: pa.Scalar) -> pa.Table:
    with pa.ipc.open_stream(data.as_buffer()) as stream:
        return stream.read_all()


def _unpacked(parcels: pa.Table) -> list[Parcel]:
    return [
        (key, _opened(data)) for key, data in zip(parcels["key"].to_pylist(), parcels["data"], strict=True)
    ]
