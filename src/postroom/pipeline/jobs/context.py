"""What all steps of a run share, and how they read and replace tables."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from postroom.clock import Clock
from postroom.pipeline.errors import LakeDamaged
from postroom.pipeline.jobs.frames import table_frame
from postroom.pipeline.jobs.progress import Told
from postroom.pipeline.jobs.quarantine import QuarantineFinding, keep
from postroom.pipeline.jobs.run_log import RunLog
from postroom.pipeline.jobs.tasks import ANSWER, answers
from postroom.pipeline.lake.files import WrittenFile
from postroom.pipeline.lake.lake import Lake, LakeFile, Positions, TableSnapshot
from postroom.pipeline.lake.reading import read_batches
from postroom.pipeline.lake.tables import Table
from postroom.pipeline.lake.upsert import Build, UpsertOutput, unchanged, write_parts
from postroom.pipeline.sources.sqlite import SqliteSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TableWork(msgspec.Struct, frozen=True):
    """A table as a step finds it. One that is built anew counts as empty until the commit that replaces
    it."""

    snapshot: TableSnapshot
    anew: bool

    @property
    def table(self) -> Table:
        return self.snapshot.table

    @property
    def done(self) -> Positions:
        return Positions() if self.anew else self.snapshot.positions

    @property
    def files(self) -> list[LakeFile]:
        return [] if self.anew else self.snapshot.files


class Replacement(msgspec.Struct, frozen=True):
    """A table to be filled, and those of its files that hold rows which are replaced; with `whole`, nothing
    of them stays."""

    work: TableWork
    by: tuple[str, ...]
    files: Sequence[LakeFile]
    whole: bool = False

    @property
    def gone(self) -> Sequence[LakeFile]:
        return self.work.snapshot.files if self.work.anew else self.files


class Context(msgspec.Struct, frozen=True):
    """`anew` names the tables that this run builds from the beginning; `replaced` those it has committed."""

    spark: "SparkSession"
    lake: Lake
    source: SqliteSource
    clock: Clock
    told: Told
    log: RunLog
    anew: frozenset[str] = frozenset()
    replaced: set[str] = msgspec.field(default_factory=set)
    written: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """The files that were committed, by table."""

    def look(self, table: Table) -> TableWork:
        """A table that was replaced in this run is no longer built anew."""
        found = self.lake.snapshot(table)
        wanted = table.name in self.anew and table.name not in self.replaced
        return TableWork(found, found.exists and (wanted or found.outgrown))

    def commit(
        self,
        work: TableWork,
        added: Sequence[WrittenFile],
        positions: Positions,
        removed: Sequence[LakeFile] = (),
    ) -> None:
        """Put the table where the step has brought it, unless somebody else has moved it meanwhile."""
        table = work.table
        self.lake.commit(
            table, added, positions, base=work.snapshot.positions, removed=removed, reshaped=work.anew,
            about={"run": self.log.run_id},
        )  # fmt: skip
        self.replaced.add(table.name)
        self.written.setdefault(table.name, []).extend(file.path for file in added)

    def frame(
        self, table: Table, files: Sequence[LakeFile], columns: Sequence[str] | None = None
    ) -> "DataFrame":
        """Files of a table as a frame with the declared columns, whatever else they hold."""
        frame = table_frame(self.spark, self.lake, table, files)
        return frame.select(*columns) if columns else frame

    def between(
        self, table: Table, column: str, after: int, up_to: int, columns: Sequence[str] | None = None
    ) -> "DataFrame":
        """Rows of a table with a number in a range; nothing is said about numbers where whole files fit.

        A run's files mostly end where the run does, and a number in a query is one in the code that Spark
        compiles for it, which would then be compiled anew for every run.
        """
        files = newer(self.lake.files(table), column, after)
        frame = self.frame(table, files, columns)
        if all(_low(file, column) > after and _high(file, column) <= up_to for file in files):
            return frame
        return frame.where(f"{column} > {after} and {column} <= {up_to}")

    def quarantine(self, findings: Sequence[QuarantineFinding]) -> int:
        return keep(self.lake, findings, self.log.run_id, self.clock)

    def replace(
        self,
        frame: "DataFrame",
        targets: Sequence[Replacement],
        positions: Positions,
        build: Build = unchanged,
        order: Sequence[str] = (),
        look: Callable[[list[LakeFile]], None] = lambda _: None,
    ) -> dict[str, int]:
        """Put what is built of a frame's rows into tables, in the place of rows with the same key.

        How many rows were written to each part of the first table, by its cut. Before anything is committed,
        `look` is shown the new files of the first table: once they are, nobody would come back to them.
        """
        outputs = [
            UpsertOutput(
                table=each.work.table.name,
                uri=self.lake.uri(each.work.table),
                schema=each.work.table.schema,
                cut=each.work.table.cut or "",
                by=each.by,
                tracked=each.work.table.tracked,
                old={} if each.work.anew or each.whole else _by_cut(each.files),
            )
            for each in targets
        ]
        cut = outputs[0].cut
        parted = frame.repartition(cut).sortWithinPartitions(*(order or (cut,)))
        written = answers(parted.mapInArrow(partial(write_parts, outputs, build), ANSWER))
        first = targets[0].work.table
        new = written.get(first.name, [])
        look([_uncommitted(file, self.lake.uri(first)) for file in new])
        # The first table goes last: others are whole when it says how far they have come.
        for each in reversed(targets):
            self.commit(each.work, written.get(each.work.table.name, []), positions, each.gone)
        parts: dict[str, int] = {}
        for file in new:
            parts[file.cut or ""] = parts.get(file.cut or "", 0) + file.rows
        return parts


def newer(files: Sequence[LakeFile], column: str, after: int) -> list[LakeFile]:
    """Files that may hold numbers beyond one."""
    return [file for file in files if _high(file, column) > after]


def _uncommitted(file: WrittenFile, uri: str) -> LakeFile:
    return LakeFile(file.path, f"{uri}/{file.path}", file.size, file.rows, file.cut, {}, {})


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


def read_columns(files: Sequence[LakeFile], table: Table, columns: list[str]) -> pa.Table:
    """A few columns of files, on the driver; for what must be known before a job can be planned."""
    kinds = pa.schema([table.schema.field(name) for name in columns])
    batches = []
    for file in files:
        try:
            batches += [batch.cast(kinds) for batch in read_batches(file.uri, columns)]
        except (pa.ArrowInvalid, OSError) as error:
            raise LakeDamaged(table=table.name, problem=f"{file.path}: {error}", file=file) from error
    return pa.Table.from_batches(batches, kinds)
