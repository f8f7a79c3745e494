"""Days of silver and gold built once more from bronze; all other days and every position stay as they are.

For rows that went wrong, or that are made otherwise since. Each table is replaced in one commit, so it may be
broken off and asked for again.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from postroom.clock import SECOND, Clock
from postroom.pipeline.errors import DaysGone, LakeMissing
from postroom.pipeline.jobs.context import Context, TableWork
from postroom.pipeline.jobs.conversations import build_all
from postroom.pipeline.jobs.crew import Crew
from postroom.pipeline.jobs.gold import sum_days
from postroom.pipeline.jobs.lineage import tell_lineage
from postroom.pipeline.jobs.progress import Told, reported, silent, watched
from postroom.pipeline.jobs.quarantine import bad_events
from postroom.pipeline.jobs.results import StepResults, read_results
from postroom.pipeline.jobs.retention import day_of
from postroom.pipeline.jobs.run import NORMAL, Options, check_written, explained, notices_of
from postroom.pipeline.jobs.run_log import RunLog
from postroom.pipeline.jobs.silver import GatherLives, GatherTurns, LifeTasks, TurnTasks, new_rows
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.lease import hold_lease
from postroom.pipeline.lake.tables import (
    BRONZE,
    HANDOFFS,
    LEDGER,
    MESSAGE_LIFE,
    RECORDS,
    SPANS,
    TRACES,
    TURNS,
)
from postroom.pipeline.sources.sqlite import SqliteSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postroom.pipeline.jobs.session import LazySession


class Backfilled(msgspec.Struct, frozen=True):
    """How many days, and the rows that were written by table."""

    days: int
    rows: dict[str, int]
    broken: list[str]
    notices: list[str] = []


class DayRange(msgspec.Struct, frozen=True):
    """From one day to another, both included."""

    first: date
    last: date

    @property
    def names(self) -> frozenset[str]:
        count = (self.last - self.first).days + 1
        return frozenset((self.first + timedelta(days=each)).isoformat() for each in range(count))


def backfill(
    spark: "SparkSession | LazySession",
    lake: Lake,
    source: SqliteSource,
    clock: Clock,
    days: DayRange,
    options: Options = NORMAL,
    told: Told = silent,
) -> Backfilled:
    """The lake must be up to date: what came since is the business of a run."""
    check_days(lake, days)
    log = RunLog(lake, clock)
    with hold_lease(lake, clock) as lease:
        at = Context(Crew(spark, options.few), lake, source, clock, reported(lease, told), log)
        try:
            with tell_lineage(
                options.lineage, "pipeline.backfill", lake, source.path, log, clock, at.written
            ) as listener:
                with explained(lake, source):
                    rows = {
                        MESSAGE_LIFE.name: _lives(at, days),
                        TURNS.name: _turns(at, days),
                        TRACES.name: _conversations(at, days),
                    }
                    with log.step("gold") as step:
                        rows["gold"] = step.rows_out = sum_days(at, set(days.names))
                broken = check_written(at, at.look(TRACES).done)
        finally:
            log.save()
    return Backfilled(len(days.names), rows, broken, notices_of(listener))


def check_days(lake: Lake, days: DayRange) -> None:
    if lake.open(LEDGER) is None:
        raise LakeMissing(lake=lake.location)
    kept = max(lake.snapshot(table).kept_from for table in BRONZE)
    # Of the day in which it was let go, a part is gone.
    first = day_of(kept) + timedelta(days=1) if kept else date.min
    if days.first < first:
        raise DaysGone(day=first.isoformat())


def _lives(at: Context, days: DayRange) -> int:
    work = at.look(MESSAGE_LIFE)
    # Nothing happens to a message before its day.
    begin = int(datetime(days.first.year, days.first.month, days.first.day, tzinfo=UTC).timestamp()) * SECOND
    files = [file for file in at.lake.files(LEDGER) if (file.high.get("time") or begin) >= begin]
    new = new_rows(files, "seq", 0, work.done.ledger)
    workers = at.crew.of(new.rows)
    with at.log.step("message_life") as step, watched(workers, at.told, "message_life", new.rows):
        tasks = LifeTasks(new=new, bad=bad_events(at.lake), days=days.names)
        gather = GatherLives(work.target([]))
        results = read_results(workers.collect(tasks, len(new.portions), gather, rows=new.rows))
        step.rows_out = _replace(at, [work], results, days)
    return step.rows_out


def _turns(at: Context, days: DayRange) -> int:
    work = at.look(TURNS)
    new = new_rows(at.lake.files(RECORDS), "id", 0, work.done.records)
    workers = at.crew.of(new.rows)
    with at.log.step("turns_clean") as step, watched(workers, at.told, "turns_clean", new.rows):
        gather = GatherTurns(work.target([]))
        tasks = TurnTasks(new, days.names)
        results = read_results(workers.collect(tasks, len(new.portions), gather, rows=new.rows))
        step.rows_out = _replace(at, [work], results, days)
    return step.rows_out


def _conversations(at: Context, days: DayRange) -> int:
    lives = sorted(at.lake.files(MESSAGE_LIFE), key=lambda file: file.cut or "")
    rows = sum(file.rows for file in lives)
    workers = at.crew.of(rows)
    with at.log.step("conversations") as step, watched(workers, at.told, "conversations", rows):
        works = [at.look(table) for table in (TRACES, SPANS, HANDOFFS)]
        results = build_all(at, workers, works, lives, days.names)
        step.rows_out = _replace(at, works, results, days)
    return step.rows_out


def _replace(at: Context, works: Sequence[TableWork], results: StepResults, days: DayRange) -> int:
    """In the place of all that is there of these days."""
    for work in works:
        gone = {file.path for file in work.files if file.cut in days.names}
        results.replaced[work.table.name] = gone
    at.commit_results(works, results, works[0].done)
    return results.rows(works[0].table.name)
