"""What all steps of a run share, and how they find tables and move them on."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from postroom.clock import Clock
from postroom.pipeline.errors import LakeDamaged
from postroom.pipeline.jobs.crew import Crew
from postroom.pipeline.jobs.progress import Told
from postroom.pipeline.jobs.quarantine import QuarantineFinding, keep
from postroom.pipeline.jobs.results import StepResults
from postroom.pipeline.jobs.run_log import RunLog
from postroom.pipeline.lake.files import WrittenFile
from postroom.pipeline.lake.lake import Lake, LakeFile, Positions, TableSnapshot
from postroom.pipeline.lake.reading import scan_rows
from postroom.pipeline.lake.tables import Table
from postroom.pipeline.lake.upsert import Target
from postroom.pipeline.sources.sqlite import SqliteSource


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

    def target(self, old: Sequence[LakeFile] | None = None) -> Target:
        """For tasks that fill it; older rows may be in any of its files, or in those that are named."""
        parts: dict[str | None, list[LakeFile]] = {}
        for file in self.files if old is None else old:
            parts.setdefault(file.cut, []).append(file)
        return Target(table=self.table.name, uri=self.snapshot.uri, old=parts)


class Context(msgspec.Struct, frozen=True):
    """`anew` names the tables that this run builds from the beginning; `replaced` those it has committed."""

    crew: Crew
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

    def commit_results(self, works: Sequence[TableWork], results: StepResults, positions: Positions) -> None:
        """What tasks made of these tables. The first goes last: others are whole when it says how far they
        have come."""
        for work in reversed(works):
            name = work.table.name
            gone = results.replaced.get(name, set())
            removed = [file for file in work.snapshot.files if work.anew or file.path in gone]
            self.commit(work, results.written.get(name, []), positions, removed)

    def quarantine(self, findings: Sequence[QuarantineFinding]) -> int:
        return keep(self.lake, findings, self.log.run_id, self.clock)


def newer(files: Sequence[LakeFile], column: str, after: int) -> list[LakeFile]:
    """Files that may hold numbers beyond one."""
    return [file for file in files if _high(file, column) > after]


def _high(file: LakeFile, column: str) -> float:
    found = file.high.get(column)
    return math.inf if found is None else found


def in_portions(files: Sequence[LakeFile], rows: int) -> list[list[LakeFile]]:
    """Files in the order they come, so many rows together at most; a larger file stands alone."""
    portions: list[list[LakeFile]] = []
    count = 0
    for file in files:
        if not portions or count + file.rows > rows:
            portions.append([])
            count = 0
        portions[-1].append(file)
        count += file.rows
    return portions


def read_columns(
    files: Sequence[LakeFile], table: Table, columns: Sequence[str], where: Any = None
) -> pa.Table:
    """A few columns of files, on the driver; for what must be known before tasks can be planned."""
    try:
        return scan_rows(files, table, columns, where)
    except (pa.ArrowInvalid, OSError) as error:
        said = str(error)
        file = next((file for file in files if file.path in said), None)
        raise LakeDamaged(table=table.name, problem=said, file=file) from error
