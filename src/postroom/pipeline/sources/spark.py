"""`postroom` as a Spark data source: read a store, follow its ledger, publish a frame.

Register it once in a session: `register(spark)`. Then `spark.read.format("postroom").load("room.db")`.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from postroom.errors import InvalidField
from postroom.pipeline.bronze.ingest import CLEAN
from postroom.pipeline.errors import LedgerGap
from postroom.pipeline.lake.tables import LEDGER, MESSAGES, RECORDS, Table
from postroom.pipeline.sources.publish import PublishRow, publish, publish_over_http, read_rows
from postroom.pipeline.sources.sqlite import SqliteSource, Wanted, open_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS_PER_TASK = 250_000
_TABLES = {"ledger": LEDGER, "records": RECORDS, "messages": MESSAGES}
_NUMBER = {"ledger": "seq", "records": "id", "messages": "seq"}
MOST_VALUES = 10_000
"""Longer lists are left to Spark."""
# What a store is asked for by value: columns that are taken in as they are.
_ASKED = {
    "ledger": {"type", "tenant", "scope", "queue", "message_id", "correlation_id", "causation_id", "actor"},
    "records": {"kind", "tenant", "key", "correlation_id", "message_id"},
    "messages": {"id", "tenant", "state", "message_type", "correlation_id", "causation_id", "parent_id"},
}


def register(spark: "SparkSession") -> None:
    spark.dataSource.register(PostroomSource)


class Range(InputPartition):
    def __init__(self, after: int, up_to: int, wanted: Sequence[Wanted] = ()) -> None:
        super().__init__((after, up_to))
        self.after = after
        self.up_to = up_to
        self.wanted = tuple(wanted)


class PostroomSource(DataSource):
    """Options: `path` (the store), `table` (ledger, records, messages), `rowsPerTask`, `from`, `maxRows`.

    For writing: `url` and `token` of the running office, or `path` of a store that nobody has open; `queue`;
    and the names of columns: `key` (idempotency), `body`. Every other column that bears the name of a
    message's field is taken as that.
    """

    @classmethod
    def name(cls) -> str:
        return "postroom"

    def _table(self) -> str:
        name = self.options.get("table", "ledger")
        if name not in _TABLES:
            raise InvalidField("table", f"is {name!r}, must be one of {', '.join(_TABLES)}")
        return name

    def schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(_TABLES[self._table()].schema)

    def reader(self, schema: StructType) -> "RangeReader":
        return RangeReader(self._source(), self._table(), self._rows(), schema.names)

    def streamReader(self, schema: StructType) -> "LedgerStream":  # noqa: N802 - Spark's name
        if self._table() != "ledger":
            raise InvalidField("table", "only the ledger can be followed")
        start = int(self.options.get("from", "0"))
        most = self.options.get("maxRows")
        return LedgerStream(self._source(), self._rows(), start, int(most) if most else None)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        if overwrite:
            raise InvalidField("mode", "must be append: a queue is never overwritten")
        options = dict(self.options)
        return OfficePublisher(options) if options.get("url") else Publisher(options)

    def _source(self) -> SqliteSource:
        path = self.options.get("path")
        if not path:
            raise InvalidField("path", "is needed: the store to read")
        return open_source(path)

    def _rows(self) -> int:
        return max(1, int(self.options.get("rowsPerTask", str(EVENTS_PER_TASK))))


def _require(options: dict[str, str], *names: str) -> None:
    for name in names:
        if not options.get(name):
            raise InvalidField(name, "is needed to publish")


def _pieces(after: int, up_to: int, size: int) -> list[Range]:
    return [Range(low, min(low + size, up_to)) for low in range(after, up_to, size)]


def _read(source: SqliteSource, table: str, part: Range) -> Iterator[pa.RecordBatch]:
    declared: Table = _TABLES[table]
    raw = {"ledger": source.ledger, "records": source.records, "messages": source.rows}[table]
    for batch in raw(part.after, part.up_to, part.wanted):
        if batch.num_rows:
            clean = CLEAN[declared.name](batch).select(declared.schema.names).cast(declared.schema)
            yield from clean.to_batches()


class RangeReader(DataSourceReader):
    """One task for each range of numbers. Comparisons of the number narrow what is read, and so do values
    that a column must have; of those Spark looks at the answer again."""

    def __init__(self, source: SqliteSource, table: str, rows: int, names: Sequence[str]) -> None:
        self._source = source
        self._table = table
        self._rows = rows
        self._after = 0
        self._up_to: int | None = None
        self._numbers: set[int] | None = None
        self._wanted: list[Wanted] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        for each in filters:
            if not self._narrow(each):
                yield each

    def _narrow(self, given: Filter) -> bool:
        """Whether Spark need not look again."""
        column: Any = getattr(given, "attribute", None)
        value: Any = getattr(given, "value", None)
        if column != (_NUMBER[self._table],):
            self._ask(column, given)
            return False
        if isinstance(given, In) and all(isinstance(each, int) for each in value):
            self._numbers = set(value) if self._numbers is None else self._numbers & set(value)
            return False
        if not isinstance(value, int):
            return False
        if isinstance(given, GreaterThan | GreaterThanOrEqual | EqualTo):
            self._after = max(self._after, value if isinstance(given, GreaterThan) else value - 1)
        if isinstance(given, LessThan | LessThanOrEqual | EqualTo):
            last = value - 1 if isinstance(given, LessThan) else value
            self._up_to = last if self._up_to is None else min(self._up_to, last)
        return isinstance(given, GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual | EqualTo)

    def _ask(self, column: Any, given: Filter) -> None:
        if not isinstance(given, EqualTo | In) or len(column) != 1 or column[0] not in _ASKED[self._table]:
            return
        values = given.value if isinstance(given, In) else (given.value,)
        if 0 < len(values) <= MOST_VALUES and all(isinstance(each, str) for each in values):
            self._wanted.append(Wanted(column[0], tuple(values)))

    def partitions(self) -> Sequence[InputPartition]:
        snapshot = self._source.snapshot()
        last = {"ledger": snapshot.head, "records": snapshot.records, "messages": snapshot.messages}[
            self._table
        ]
        if self._up_to is not None:
            last = min(last, self._up_to)
        if self._numbers is not None:
            return self._by_number(last)
        return [
            Range(each.after, each.up_to, self._wanted) for each in _pieces(self._after, last, self._rows)
        ] or [Range(0, 0)]

    def _by_number(self, last: int) -> list[InputPartition]:
        """Each task some of the numbers asked for, and not what lies between them."""
        numbers = sorted(each for each in self._numbers or () if self._after < each <= last)
        size = min(self._rows, MOST_VALUES)
        some = [numbers[first : first + size] for first in range(0, len(numbers), size)]
        own = _NUMBER[self._table]
        return [Range(each[0] - 1, each[-1], (*self._wanted, Wanted(own, tuple(each)))) for each in some] or [
            Range(0, 0)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        yield from _read(self._source, self._table, partition)


class LedgerStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The ledger by its numbers, which have no gaps: nothing is missed and nothing comes twice.

    A new stream begins with what the store still has; one that has fallen behind that is told so.
    """

    def __init__(self, source: SqliteSource, rows: int, start: int, most: int | None) -> None:
        self._source = source
        self._rows = rows
        self._start = start
        self._most = most
        self._end: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"seq": max(self._start, self._source.snapshot().anchor)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._end = self._source.snapshot().head

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._most) if self._most else ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        head = self._source.snapshot().head if self._end is None else self._end
        if isinstance(limit, ReadMaxRows):
            head = min(head, start["seq"] + limit.max_rows)
        return {"seq": max(head, start["seq"])}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        anchor = self._source.snapshot().anchor
        if start["seq"] < min(anchor, end["seq"]):
            first = start["seq"] + 1
            raise LedgerGap(seq=first, problem="pruned", first=first, last=anchor)
        return _pieces(start["seq"], end["seq"], self._rows)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        yield from _read(self._source, "ledger", partition)

    def commit(self, end: dict[str, int]) -> None:
        """Spark keeps the position; it lags by a batch and must not decide what is pruned."""


class PublishedRows(WriterCommitMessage):
    """How many rows one task has published."""

    def __init__(self, count: int) -> None:
        self.count = count


class OfficePublisher(DataSourceArrowWriter):
    """Every task publishes its own rows through the running office. A task that is repeated finds its keys
    there; of a job that fails, what was published stays, and the next try adds the rest."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._url = options.get("url", "")
        self._token = options.get("token") or os.environ.get("POSTROOM_TOKEN", "")
        _require(options, "queue")
        if not self._token:
            raise InvalidField(
                "token", "is needed: a key of the service, or the owner's token (POSTROOM_TOKEN)"
            )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PublishedRows:
        count = 0
        for batch in iterator:
            rows = read_rows(batch, key=self._options.get("key"), body=self._options.get("body"))
            count += publish_over_http(self._url, self._token, self._options["queue"], rows)
        return PublishedRows(count)


class GatheredRows(WriterCommitMessage):
    """What one task wants published; only tasks that ended well hand theirs over."""

    def __init__(self, rows: bytes) -> None:
        self.rows = rows


class Publisher(DataSourceArrowWriter):
    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        _require(options, "path", "queue")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> GatheredRows:
        found: list[PublishRow] = []
        for batch in iterator:
            found += read_rows(batch, key=self._options.get("key"), body=self._options.get("body"))
        return GatheredRows(msgspec.msgpack.encode(found))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All tasks are done: publish in one place. A repeated commit finds the keys and adds nothing."""
        every: list[PublishRow] = []
        for message in messages:
            if isinstance(message, GatheredRows):
                every += msgspec.msgpack.decode(message.rows, type=list[PublishRow])
        publish(self._options["path"], self._options["queue"], every)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing was published yet."""
