"""The silver steps for messages and turns. Each goes on from where its table is."""

from typing import TYPE_CHECKING

import pyarrow as pa

from postroom.pipeline.jobs.context import Context, Replacement, newer, read_columns
from postroom.pipeline.jobs.lookup import files_with
from postroom.pipeline.jobs.progress import watched
from postroom.pipeline.jobs.quarantine import MOST, QuarantineFinding, bad_events
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.lake import LakeFile, Positions
from postroom.pipeline.lake.tables import LEDGER, MESSAGE_LIFE, RECORDS, TURNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def live(at: Context, target: Positions) -> None:
    """`message_life` takes in the events it has not seen."""
    from pyspark.sql import functions as F
    from pyspark.sql.observation import Observation

    from postroom.pipeline.silver import events as ev
    from postroom.pipeline.silver import message_life as ml

    work = at.look(MESSAGE_LIFE)
    after = work.done.ledger
    if after >= target.ledger:
        return
    with (
        at.log.step("message_life", after, target.ledger) as step,
        watched(at.spark, at.told, "message_life", target.ledger - after),
    ):
        ledger = at.between(LEDGER, "seq", after, target.ledger)
        bad = bad_events(at.lake)
        if bad:
            ledger = ledger.where(~F.col("seq").isin(bad))
        seen, lived = Observation("events"), Observation("lives")

        def watch(events: "DataFrame") -> "DataFrame":
            return events.observe(seen, F.count(ev.problem()).alias("bad"), F.count("*").alias("all"))

        known, touched = None, list[LakeFile]()
        if work.files:
            ids = _messages_of(newer(at.lake.files(LEDGER), "seq", after), after)
            touched = files_with(work.files, MESSAGE_LIFE, ("message_id",), ids)
            if touched:
                wanted = at.spark.createDataFrame(pa.table({"message_id": ids}))
                known = at.frame(MESSAGE_LIFE, touched).join(wanted, "message_id", "left_semi")
        rows = ml.lives(ledger, known, watch)
        rows = rows.observe(lived, F.count(ml.problem()).alias("bad"))

        def set_aside(written: list[LakeFile]) -> None:
            if seen.get["bad"]:
                step.quarantined += _quarantine_events(at, ledger, seen.get["bad"])
            if lived.get["bad"]:
                step.quarantined += _quarantine_lives(at, written, after)

        target_of = Replacement(work, ("message_id",), touched)
        order = ("day", "message_id")
        parts = at.replace(rows, [target_of], Positions(target.ledger, 0), order=order, look=set_aside)
        step.rows_in, step.rows_out = seen.get["all"], sum(parts.values())


def _messages_of(files: list[LakeFile], after: int) -> pa.Array:
    """The messages that events beyond a number are about."""
    table = read_columns(files, LEDGER, ["seq", "message_id"])
    return pc.unique(table["message_id"].filter(pc.greater(table["seq"], after))).drop_null()


def _quarantine_events(at: Context, ledger: "DataFrame", count: int) -> int:
    from postroom.pipeline.silver.events import message_events, opened, problem

    events = opened(message_events(ledger), "state", "attempts", "kind")
    bad = events.where(problem().isNotNull()).select("seq", "type", "message_id", problem().alias("reason"))
    rows = bad.orderBy("seq").limit(MOST).toArrow().to_pylist()
    at.quarantine(
        [
            QuarantineFinding(
                table=LEDGER.name, key=str(row["seq"]), reason=row["reason"], row=row, seq=row["seq"]
            )
            for row in rows
        ]
    )
    return count


def _quarantine_lives(at: Context, files: list[LakeFile], after: int) -> int:
    from pyspark.sql import functions as F

    from postroom.pipeline.silver.message_life import problem

    bad = at.frame(MESSAGE_LIFE, files).where(problem().isNotNull() & (F.col("last_seq") > after))
    rows = bad.select("message_id", "last_seq", problem().alias("reason")).limit(MOST).toArrow().to_pylist()
    at.quarantine(
        [
            QuarantineFinding(
                table=MESSAGE_LIFE.name, key=row["message_id"], reason=row["reason"], seq=row["last_seq"]
            )
            for row in rows
        ]
    )
    return len(rows)


def count_turns(at: Context, target: Positions) -> None:
    """`turns_clean` takes in the records it has not seen. Records never change, so its rows only grow."""
    from postroom.pipeline.silver.turns import turns

    work = at.look(TURNS)
    after = work.done.records
    if work.snapshot.exists and not work.anew and after >= target.records:
        return
    new = target.records - after
    with at.log.step("turns_clean", after, target.records) as step:
        step.rows_in = new
        with watched(at.spark, at.told, "turns_clean", new):
            found = turns(at.between(RECORDS, "id", after, target.records))
            target_of = Replacement(work, ("record_id",), [])
            parts = at.replace(found, [target_of], Positions(0, target.records))
        step.rows_out = sum(parts.values())
