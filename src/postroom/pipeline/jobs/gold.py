"""The gold step: the days in which something changed are counted anew, all tables at the same time."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from datetime import date
from typing import Any

import pyarrow as pa

from postroom.pipeline.jobs.context import Context, TableWork
from postroom.pipeline.jobs.gold_tasks import SUMS, DaysOfSilver, Sum, SumTasks
from postroom.pipeline.jobs.progress import RunProgress
from postroom.pipeline.jobs.retention import day_of
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.files import FileWriter, WrittenFile
from postroom.pipeline.lake.lake import LakeFile, Positions, TableSnapshot
from postroom.pipeline.lake.reading import read_portions, read_what_is_whole
from postroom.pipeline.lake.tables import MESSAGE_LIFE, TURNS, Table
from postroom.pipeline.lake.upsert import parts_of

ROWS_PER_TASK = 200_000


def sum_up(at: Context, target: Positions, talked: Future[Any]) -> None:
    """What needs no conversations is counted while those are still made; `talked` tells when they are."""
    wanted = [each for each in SUMS if not _current(at.look(each.table), target)]
    if not wanted:
        return
    at.told(RunProgress(step="gold", total=len(wanted)))
    early = [each for each in wanted if set(each.inputs) <= {MESSAGE_LIFE, TURNS}]
    late = [each for each in wanted if each not in early]
    done = 0
    with at.log.step("gold", 0, target.ledger) as step:
        for some in (early, late):
            if some is late:
                talked.result()
            step.rows_out += _sum(at, some, target)
            done += len(some)
            at.told(RunProgress(step="gold", done=done, total=len(wanted)))
    at.told(RunProgress(step="gold", done=done, total=done, finished=True))


def sum_days(at: Context, days: set[str]) -> int:
    """These days once more, in all tables, which stay where they are; how many rows came out."""
    return _sum(at, SUMS, None, days)


def _current(work: TableWork, target: Positions) -> bool:
    return work.snapshot.exists and not work.anew and work.done.covers(target)


def changed_days(files: list[LakeFile], table: Table, done: Positions) -> set[str]:
    """The days of a silver table that have something newer than these positions."""
    if not table.tracked:
        return set()
    column = table.tracked[0]
    after = done.records if column == "record_id" else done.ledger
    return {file.cut or "" for file in files if file.high.get(column) is None or file.high[column] > after}


def _sum(at: Context, sums: Sequence[Sum], target: Positions | None, days: set[str] | None = None) -> int:
    """`days` are to be counted, changed or not; without `target` tables stay where they are."""
    silver = {table.name: at.lake.snapshot(table) for each in sums for table in (*each.inputs, *each.days)}
    works = {each.table.name: at.look(each.table) for each in sums}
    whole = {each.table.name: _whole_from(silver, each) for each in sums}
    wanted = {
        each.table.name: frozenset(
            day
            for day in (_changed(silver, each, works[each.table.name]) if days is None else days)
            # Of a day that was let go, only what happened late is there. Its sums stay as they were.
            if day >= whole[each.table.name].isoformat()
        )
        for each in sums
    }
    portions = _portions(silver, sums, wanted)
    rows = sum(file.rows for each in portions for files in each.files.values() for file in files)
    found: dict[str, list[pa.Table]] = {}
    for name, table in at.crew.of(rows, len(portions)).collect(SumTasks(portions), len(portions)):
        found.setdefault(name, []).append(table)
    written = 0
    for each in sums:
        name, work = each.table.name, works[each.table.name]
        _replace(at, work, found.get(name, []), wanted[name], whole[name], target or work.done)
        written += sum(table.num_rows for table in found.get(name, []))
    return written


def _whole_from(silver: dict[str, TableSnapshot], each: Sum) -> date:
    return day_of(max(silver[table.name].kept_from for table in (*each.inputs, *each.days)))


def _changed(silver: dict[str, TableSnapshot], each: Sum, work: TableWork) -> set[str]:
    days: set[str] = set()
    for table in (*each.inputs, *each.days):
        days |= changed_days(silver[table.name].files, table, work.done)
    return days


def _portions(
    silver: dict[str, TableSnapshot], sums: Sequence[Sum], wanted: dict[str, frozenset[str]]
) -> list[DaysOfSilver]:
    """Days that follow one another, so many that their rows are a task."""
    files: dict[str, dict[str, list[LakeFile]]] = {}
    for table in {table.name for each in sums for table in each.inputs}:
        for file in silver[table].files:
            files.setdefault(file.cut or "", {}).setdefault(table, []).append(file)
    cut: list[list[str]] = []
    count = 0
    for day in sorted(set().union(*wanted.values())):
        rows = max((sum(file.rows for file in each) for each in files.get(day, {}).values()), default=0)
        if not cut or count + rows > ROWS_PER_TASK:
            cut.append([])
            count = 0
        cut[-1].append(day)
        count += rows
    return [
        DaysOfSilver(
            {name: days & set(some) for name, days in wanted.items() if days & set(some)},
            {
                table.name: [file for day in some for file in files.get(day, {}).get(table.name, ())]
                for each in sums
                for table in each.inputs
            },
        )
        for some in cut
    ]


def _replace(
    at: Context, work: TableWork, found: list[pa.Table], days: frozenset[str], whole: date, target: Positions
) -> None:
    if not days and not work.anew:
        at.commit(work, [], target)
        return
    rows = pa.concat_tables([*found, work.table.schema.empty_table()])
    rows = rows.sort_by([(name, "ascending") for name in work.table.key])
    months = {day[:7] for day in days}
    old = [file for file in work.snapshot.files if work.anew or file.cut in months]
    kept = _let_go(work, whole) if work.anew else _other_days(work, old, days)
    at.commit(work, _write_months(at, work.table, [rows, *kept]), target, old)


def _other_days(work: TableWork, files: list[LakeFile], days: frozenset[str]) -> Iterator[pa.Table]:
    """What files of a month hold of days that are not counted anew."""
    gone = pa.array([date.fromisoformat(day) for day in sorted(days)], pa.date32())
    for file in files:
        for part in read_portions(file, work.table):
            yield part.filter(pc.invert(pc.is_in(part["day"], value_set=gone)))


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
    for month, rows in parts_of(pa.concat_tables(parts), table.cut or ""):
        if rows.num_rows:
            writer = FileWriter(at.lake.uri(table), table.schema, (table.cut or "", month), table.tracked)
            writer.write(rows)
            written.append(writer.close())
    return written
