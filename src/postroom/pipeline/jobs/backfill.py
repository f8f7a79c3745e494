"""Days of silver and gold built once more from bronze; all other days and every position stay as they are.

For rows that went wrong, or that are made otherwise since. Each table is replaced in one commit, so it may be
broken off and asked for again.
"""

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from postroom.clock import SECOND, Clock
from postroom.pipeline.errors import DaysGone, LakeMissing
from postroom.pipeline.jobs.context import Context, Replacement
from postroom.pipeline.jobs.conversations import BY
from postroom.pipeline.jobs.gold import sum_days
from postroom.pipeline.jobs.lineage import tell_lineage
from postroom.pipeline.jobs.progress import Told, reported, silent, watched
from postroom.pipeline.jobs.quarantine import bad_events
from postroom.pipeline.jobs.retention import day_of
from postroom.pipeline.jobs.run import check_written, explained, notices_of
from postroom.pipeline.jobs.run_log import RunLog
from postroom.pipeline.jobs.session import sized
from postroom.pipeline.lake.lake import Lake, LakeFile
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
    Table,
)
from postroom.pipeline.sources.sqlite import SqliteSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    def names(self) -> set[str]:
        count = (self.last - self.first).days + 1
        return {(self.first + timedelta(days=each)).isoformat() for each in range(count)}

    def within(self, frame: "DataFrame") -> "DataFrame":
        return frame.where(f"day between date'{self.first}' and date'{self.last}'")

    def files(self, files: list[LakeFile]) -> list[LakeFile]:
        return [file for file in files if file.cut in self.names]


def backfill(
    spark: "SparkSession",
    lake: Lake,
    source: SqliteSource,
    clock: Clock,
    days: DayRange,
    told: Told = silent,
    lineage: str = "",
) -> Backfilled:
    """The lake must be up to date: what came since is the business of a run."""
    check_days(lake, days)
    log = RunLog(lake, clock)
    with hold_lease(lake, clock) as lease:
        at = Context(spark, lake, source, clock, reported(lease, told), log)
        events = at.look(MESSAGE_LIFE).done.ledger
        try:
            with tell_lineage(
                lineage, "pipeline.backfill", lake, source.path, log, clock, at.written
            ) as listener:
                with explained(lake, source), sized(spark, events, events):
                    rows = {
                        MESSAGE_LIFE.name: _lives(at, days),
                        TURNS.name: _turns(at, days),
                        TRACES.name: _conversations(at, days),
                    }
                    with log.step("gold") as step:
                        rows["gold"] = step.rows_out = sum_days(at, days.names)
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
    from pyspark.sql import functions as F

    from postroom.pipeline.silver import events as ev
    from postroom.pipeline.silver import message_life as ml

    work = at.look(MESSAGE_LIFE)
    with at.log.step("message_life") as step, watched(at.spark, at.told, "message_life", work.done.ledger):
        # Nothing happens to a message before its day.
        begin = (
            int(datetime(days.first.year, days.first.month, days.first.day, tzinfo=UTC).timestamp()) * SECOND
        )
        files = [file for file in at.lake.files(LEDGER) if (file.high.get("time") or begin) >= begin]
        ledger = at.frame(LEDGER, files).where(f"seq <= {work.done.ledger}")
        bad = bad_events(at.lake)
        if bad:
            ledger = ledger.where(~F.col("seq").isin(bad))
        own = ledger.withColumn("day", ev.day_of(F.col("message_id")))
        rows = ml.lives(days.within(own).drop("day"))
        step.rows_out = _replace(at, rows, MESSAGE_LIFE, days, ("day", "message_id"))
    return step.rows_out


def _turns(at: Context, days: DayRange) -> int:
    from postroom.pipeline.silver.turns import turns

    work = at.look(TURNS)
    with at.log.step("turns_clean") as step, watched(at.spark, at.told, "turns_clean", work.done.records):
        records = at.between(RECORDS, "id", 0, work.done.records)
        step.rows_out = _replace(at, days.within(turns(records)), TURNS, days)
    return step.rows_out


def _conversations(at: Context, days: DayRange) -> int:
    from postroom.pipeline.silver import conversations as talk
    from postroom.pipeline.silver.trees import build_trees

    lives = at.lake.files(MESSAGE_LIFE)
    with (
        at.log.step("conversations") as step,
        watched(at.spark, at.told, "conversations", sum(file.rows for file in lives)),
    ):
        spent = talk.spent_on_messages(at.frame(TURNS, at.lake.files(TURNS)))
        spans = days.within(talk.conversation_spans(at.frame(MESSAGE_LIFE, lives), spent))
        works = [at.look(table) for table in (TRACES, SPANS, HANDOFFS)]
        targets = [Replacement(work, BY, days.files(work.files), whole=True) for work in works]
        parts = at.replace(spans, targets, works[0].done, build_trees, talk.ORDER)
        step.rows_out = sum(parts.values())
    return step.rows_out


def _replace(
    at: Context,
    rows: "DataFrame",
    table: Table,
    days: DayRange,
    order: tuple[str, ...] = (),
) -> int:
    work = at.look(table)
    target = Replacement(work, table.key, days.files(work.files), whole=True)
    return sum(at.replace(rows, [target], work.done, order=order).values())
