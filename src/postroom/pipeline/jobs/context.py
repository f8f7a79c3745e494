"""What all steps of a run share, and how they read and replace tables."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from postroom.clock import Clock
from postroom.pipeline.errors import LakeDamaged
from postroom.pipeline.jobs.progress import Told
from postroom.pipeline.jobs.quarantine import QuarantineFinding, keep
from postroom.pipeline.jobs.run_log import RunLog
from postroom.pipeline.jobs.tasks import ANSWER, answers
from postroom.pipeline.lake.lake import Lake, LakeFile, Positions
from postroom.pipeline.lake.tables import Table
from postroom.pipeline.lake.upsert import UpsertOutput, write_sorted
from postroom.pipeline.sources.sqlite import SqliteSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Context(msgspec.Struct, frozen=True):
    spark: "SparkSession"
    lake: Lake
    source: SqliteSource
    clock: Clock
    told: Told
    log: RunLog

    def frame(
        self, table: Table, files: Sequence[LakeFile], columns: Sequence[str] | None = None
    ) -> "DataFrame":
        """Files of a table as a frame with the declared columns, whatever else they hold."""
        schema = spark_schema(table)
        if not files:
            frame = self.spark.createDataFrame([], schema)
        elif self.lake.folder is None:
            frame = remote_frame(self.spark, table, files)
        else:
            reader = self.spark.read.schema(schema).option("basePath", self.lake.uri(table))
            frame = reader.parquet(*(file.uri for file in files))
        return frame.select(*columns) if columns else frame

    def between(
        self, table: Table, column: str, after: int, up_to: int, columns: Sequence[str] | None = None
    ) -> "DataFrame":
        """Rows of a table with a number in a range; nothing is said about numbers where whole files fit.

        A run's files mostly end where the run does, and a number in a query is one in the code that Spark
        compiles for it, which would then be compiled anew for every run.
        """
        files = [file for file in self.lake.files(table) if _high(file, column) > after]
        frame = self.frame(table, files, columns)
        if all(_low(file, column) > after and _high(file, column) <= up_to for file in files):
            return frame
        return frame.where(f"{column} > {after} and {column} <= {up_to}")

    def quarantine(self, findings: Sequence[QuarantineFinding]) -> int:
        return keep(self.lake, findings, self.log.run_id, self.clock)

    def replace(
        self,
        frame: "DataFrame",
        tables: Sequence[tuple[Table, str | None]],
        by: str,
        bases: Sequence[Positions],
        positions: Positions,
        fresh: bool = False,
        look: Callable[[list[LakeFile]], None] = lambda _: None,
    ) -> dict[str, int]:
        """Put a frame's rows, and those of its list columns, into tables; rows with the same `by` go.

        `bases` are the positions of the tables from which the frame goes on. How many rows each part of the
        first table has now, by its cut. Before anything is committed, `look`
        is shown the new files of the first table: once they are, nobody would come back to them.
        """
        old = {table.name: self.lake.files(table) for table, _ in tables}
        outputs = [
            UpsertOutput(
                table=table.name,
                uri=self.lake.uri(table),
                schema=table.schema,
                cut=table.cut or "",
                by=by,
                tracked=table.tracked,
                column=column,
                old={} if fresh else _by_cut(old[table.name]),
            )
            for table, column in tables
        ]
        cut = outputs[0].cut
        sorted_ = frame.repartition(cut).sortWithinPartitions(cut)
        written = answers(sorted_.mapInArrow(partial(write_sorted, outputs), ANSWER))
        first = tables[0][0]
        parts = {file.cut: file.rows for file in written.get(first.name, [])}
        look(
            [
                LakeFile(
                    file.path, f"{self.lake.uri(first)}/{file.path}", file.size, file.rows, file.cut, {}, {}
                )
                for file in written.get(first.name, [])
            ]
        )
        # The first table goes last: others are whole when it says how far they have come.
        for (table, _), base in reversed(list(zip(tables, bases, strict=True))):
            self.lake.commit(
                table,
                written.get(table.name, []),
                positions,
                base=base,
                removed=[file for file in old[table.name] if fresh or file.cut in parts],
                about={"run": self.log.run_id},
            )
        return {cut or "": rows for cut, rows in parts.items()}


def remote_frame(spark: "SparkSession", table: Table, files: Sequence[LakeFile]) -> "DataFrame":
    """Files of an object store, read by the workers with Arrow: Spark itself would need jars for that."""
    from postroom.pipeline.jobs.tasks import spread
    from postroom.pipeline.lake.remote import read_files

    named = [(file.uri, file.cut) for file in files]
    work = partial(read_files, named, table.schema, table.cut)
    return spread(spark, len(named)).mapInArrow(work, spark_schema(table))


def _low(file: LakeFile, column: str) -> float:
    found = file.low.get(column)
    return -math.inf if found is None else found


def _high(file: LakeFile, column: str) -> float:
    found = file.high.get(column)
    return math.inf if found is None else found


def _by_cut(files: Sequence[LakeFile]) -> dict[str | None, tuple[str, ...]]:
    found: dict[str | None, tuple[str, ...]] = {}
    for file in files:
        found[file.cut] = (*found.get(file.cut, ()), file.uri)
    return found


def spark_schema(table: Table):
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(table.schema, prefer_timestamp_ntz=False)


def read_columns(files: Sequence[LakeFile], table: Table, columns: list[str]) -> pa.Table:
    """A few columns of files, on the driver; for what must be known before a job can be planned."""
    from postroom.pipeline.lake.upsert import read_batches

    kinds = pa.schema([table.schema.field(name) for name in columns])
    batches = []
    for file in files:
        try:
            batches += [batch.cast(kinds) for batch in read_batches(file.uri, columns)]
        except (pa.ArrowInvalid, OSError) as error:
            raise LakeDamaged(table=table.name, problem=f"{file.path}: {error}") from error
    return pa.Table.from_batches(batches, kinds)
