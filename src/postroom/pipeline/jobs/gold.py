"""The gold steps: the days in which something changed are counted anew, all tables at the same time."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import date
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from postroom.pipeline.jobs.context import Context, TableWork
from postroom.pipeline.jobs.progress import RunProgress
from postroom.pipeline.jobs.retention import day_of
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.files import FileWriter, WrittenFile
from postroom.pipeline.lake.lake import LakeFile, Positions
from postroom.pipeline.lake.reading import read_declared, read_what_is_whole
from postroom.pipeline.lake.tables import (
    AGENT_DAY,
    CHANNEL_DAY,
    COST_DAY,
    FAILURE_CAUSES,
    HANDOFF_GRAPH,
    HANDOFFS,
    MESSAGE_LIFE,
    QUEUE_HOUR,
    SLA,
    SPANS,
    TRACES,
    TURNS,
    Table,
)
from postroom.pipeline.lake.upsert import pieces

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AT_ONCE = 4


class Sum(msgspec.Struct, frozen=True):
    """A gold table, the silver tables it is made of, and how."""

    table: Table
    inputs: tuple[Table, ...]
    make: Callable[..., "DataFrame"]


def sums() -> tuple[Sum, ...]:
    from postroom.pipeline.gold.agents import agent_day
    from postroom.pipeline.gold.channels import channel_day
    from postroom.pipeline.gold.costs import cost_day
    from postroom.pipeline.gold.failures import failure_causes
    from postroom.pipeline.gold.handoffs import handoff_graph
    from postroom.pipeline.gold.queues import queue_hour, sla

    return (
        Sum(QUEUE_HOUR, (MESSAGE_LIFE,), queue_hour),
        Sum(AGENT_DAY, (MESSAGE_LIFE, TURNS), agent_day),
        Sum(SLA, (MESSAGE_LIFE,), sla),
        Sum(CHANNEL_DAY, (TRACES, SPANS), channel_day),
        Sum(FAILURE_CAUSES, (MESSAGE_LIFE,), failure_causes),
        Sum(COST_DAY, (TURNS,), cost_day),
        Sum(HANDOFF_GRAPH, (HANDOFFS, TRACES), _handoffs_only(handoff_graph)),
    )


def _handoffs_only(make: Callable[["DataFrame"], "DataFrame"]) -> Callable[..., "DataFrame"]:
    # Traces tell which days changed; hand-offs have no number of their own.
    return lambda handoffs, _: make(handoffs)


class SilverDays:
    """Silver tables as they stand, and frames of some days of them. Listing its files is most of what a frame
    costs, so tables of gold that ask for the same days share one."""

    def __init__(self, at: Context, tables: set[Table]) -> None:
        self._at = at
        self._frames: dict[tuple[str, frozenset[str]], DataFrame] = {}
        self._lock = threading.Lock()
        self.tables = {table.name: at.lake.snapshot(table) for table in tables}

    def read(self, table: Table, days: frozenset[str]) -> "DataFrame":
        with self._lock:
            if (table.name, days) not in self._frames:
                files = [file for file in self.tables[table.name].files if file.cut in days]
                self._frames[table.name, days] = self._at.frame(table, files)
            return self._frames[table.name, days]


def sum_up(at: Context, target: Positions, talked: Future[Any]) -> None:
    """What needs no conversations is counted while those are still made; `talked` tells when they are."""
    wanted = [each for each in sums() if not _current(at.look(each.table), target)]
    if not wanted:
        return
    at.told(RunProgress(step="gold", total=len(wanted)))
    early = [each for each in wanted if set(each.inputs) <= {MESSAGE_LIFE, TURNS}]
    late = [each for each in wanted if each not in early]
    done = 0
    with at.log.step("gold", 0, target.ledger) as step, ThreadPoolExecutor(AT_ONCE) as pool:
        for some in (early, late):
            if some is late:
                talked.result()
            silver = SilverDays(at, {table for each in some for table in each.inputs})
            running = [pool.submit(_one, at, each, silver, target) for each in some]
            for future in running:
                step.rows_out += future.result()
                done += 1
                at.told(RunProgress(step="gold", done=done, total=len(wanted)))
    at.told(RunProgress(step="gold", done=done, total=done, finished=True))


def _current(work: TableWork, target: Positions) -> bool:
    return work.snapshot.exists and not work.anew and work.done.covers(target)


def changed_days(files: list[LakeFile], table: Table, done: Positions) -> set[str]:
    """The days of a silver table that have something newer than these positions."""
    if not table.tracked:
        return set()
    column = table.tracked[0]
    after = done.records if column == "record_id" else done.ledger
    return {file.cut or "" for file in files if file.high.get(column) is None or file.high[column] > after}


def sum_days(at: Context, days: set[str]) -> int:
    """These days once more, in all tables, which stay where they are; how many rows came out."""
    rows = 0
    wanted = sums()
    silver = SilverDays(at, {table for each in wanted for table in each.inputs})
    for each in wanted:
        rows += _one(at, each, silver, at.look(each.table).done, days)
    return rows


def _one(
    at: Context,
    each: Sum,
    silver: SilverDays,
    target: Positions,
    wanted: set[str] | None = None,
) -> int:
    """`wanted` are days to be counted, changed or not."""
    work = at.look(each.table)
    days = set(wanted or ())
    for table in each.inputs if wanted is None else ():
        days |= changed_days(silver.tables[table.name].files, table, work.done)
    # Of a day that was let go, only what happened late is there. Its sums stay as they were.
    whole = day_of(max(silver.tables[table.name].kept_from for table in each.inputs))
    days = {day for day in days if day >= whole.isoformat()}
    if not days and not work.anew:
        at.commit(work, [], target)
        return 0
    frames = [silver.read(table, frozenset(days)) for table in each.inputs]
    rows = each.make(*frames).select(*each.table.schema.names).toArrow().cast(each.table.schema)
    rows = rows.sort_by([(name, "ascending") for name in each.table.key])
    months = {day[:7] for day in days}
    old = [file for file in work.snapshot.files if work.anew or file.cut in months]
    kept = _let_go(work, whole) if work.anew else _other_days(work, old, days)
    at.commit(work, _write_months(at, work.table, [rows, *kept]), target, old)
    return rows.num_rows


def _other_days(work: TableWork, files: list[LakeFile], days: set[str]) -> Iterator[pa.Table]:
    """What files of a month hold of days that are not counted anew."""
    gone = pa.array([date.fromisoformat(day) for day in sorted(days)], pa.date32())
    for file in files:
        for part in read_declared(file.uri, work.table.schema):
            yield _in_month(work.table, part.filter(pc.invert(pc.is_in(part["day"], value_set=gone))), file)


def _let_go(work: TableWork, whole: date) -> Iterator[pa.Table]:
    """Of a table that is built anew, the days whose details are gone; of damaged files, as far as they are
    whole."""
    for file in work.snapshot.files:
        if (file.cut or "") <= whole.isoformat()[:7]:
            for part in read_what_is_whole(file.uri, work.table.schema):
                early = pc.less(part["day"], pa.scalar(whole, pa.date32()))
                yield _in_month(work.table, part.filter(early), file)


def _in_month(table: Table, rows: pa.Table, file: LakeFile) -> pa.Table:
    """With the month, which only the name of the file tells."""
    place = rows.schema.get_field_index(table.cut or "")
    months = pa.array([file.cut] * rows.num_rows, pa.string())
    return rows.set_column(place, table.cut or "", months).select(table.schema.names).cast(table.schema)


def _write_months(at: Context, table: Table, parts: list[pa.Table]) -> list[WrittenFile]:
    """Gold is small: the driver itself writes it, one file a month."""
    written = []
    for month, rows in pieces(pa.concat_tables(parts), table.cut or ""):
        if rows.num_rows:
            writer = FileWriter(at.lake.uri(table), table.schema, (table.cut or "", month), table.tracked)
            writer.write(rows)
            written.append(writer.close())
    return written
