"""The silver steps: lives of messages, turns, conversations. Each goes on from where its tables are."""

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from postroom.pipeline.jobs.context import Context, read_columns
from postroom.pipeline.jobs.progress import watched
from postroom.pipeline.jobs.quarantine import MOST, QuarantineFinding, bad_events
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.lake import LakeFile, Positions
from postroom.pipeline.lake.tables import (
    HANDOFFS,
    LEDGER,
    MESSAGE_LIFE,
    RECORDS,
    SPANS,
    TRACES,
    TURNS,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# More conversations than this are not looked up one by one; then everything is built anew.
MANY = 300_000


def newer(files: list[LakeFile], column: str, after: int) -> list[LakeFile]:
    return [file for file in files if file.high.get(column) is None or file.high[column] > after]


def live(at: Context, target: Positions) -> None:
    """`message_life` takes in the events it has not seen."""
    from pyspark.sql import functions as F
    from pyspark.sql.observation import Observation

    from postroom.pipeline.silver import events as ev
    from postroom.pipeline.silver import message_life as ml

    done = at.lake.positions(MESSAGE_LIFE)
    if done.ledger >= target.ledger:
        return
    files = newer(at.lake.files(LEDGER), "seq", done.ledger)
    new = target.ledger - done.ledger
    with (
        at.log.step("message_life", done.ledger, target.ledger) as step,
        watched(at.spark, at.told, "message_life", new),
    ):
        ledger = at.between(LEDGER, "seq", done.ledger, target.ledger)
        bad = bad_events(at.lake)
        if bad:
            ledger = ledger.where(~F.col("seq").isin(bad))
        seen, lived = Observation("events"), Observation("lives")

        def watch(events: "DataFrame") -> "DataFrame":
            return events.observe(seen, F.count(ev.problem()).alias("bad"), F.count("*").alias("all"))

        old = at.lake.files(MESSAGE_LIFE)
        known = None
        if old:
            days = _days(files, done.ledger)
            touched = [file for file in old if file.cut in days]
            known = at.frame(MESSAGE_LIFE, touched) if touched else None
        rows = ml.lives(ledger, known, watch)
        rows = rows.observe(lived, F.count(ml.problem()).alias("bad"))

        def set_aside(written: list[LakeFile]) -> None:
            if seen.get["bad"]:
                step.quarantined += _quarantine_events(at, ledger, seen.get["bad"])
            if lived.get["bad"]:
                step.quarantined += _quarantine_lives(at, written, done.ledger)

        position = Positions(target.ledger, 0)
        tables = [(MESSAGE_LIFE, None)]
        parts = at.replace(rows, tables, "message_id", [done], position, not old, set_aside)
        step.rows_in, step.rows_out = seen.get["all"], sum(parts.values())


def _days(files: list[LakeFile], after: int) -> set[str]:
    """The days of the messages that new events are about; ids begin with the time."""
    table = read_columns(files, LEDGER, ["seq", "message_id"])
    ids = table["message_id"].filter(pc.greater(table["seq"], after)).drop_null()
    days = {"1970-01-01"}
    # Seven of twelve digits: a good quarter of an hour.
    for prefix in pc.unique(pc.utf8_slice_codeunits(ids, 0, 7)).to_pylist():
        try:
            first = int(prefix, 16) << 20
            for moment in (first, first + (1 << 20)):
                days.add(datetime.fromtimestamp(moment / 1000, UTC).date().isoformat())
        except (ValueError, OverflowError, OSError):
            continue  # an id of another kind, which is kept under day zero
    return days


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
    """`turns_clean` takes in the records it has not seen."""
    from postroom.pipeline.silver.turns import turns

    done = at.lake.positions(TURNS)
    if done.covers(Positions(0, target.records)) and at.lake.open(TURNS) is not None:
        return
    new = target.records - done.records
    with at.log.step("turns_clean", done.records, target.records) as step:
        step.rows_in = new
        with watched(at.spark, at.told, "turns_clean", new):
            records = at.between(RECORDS, "id", done.records, target.records)
            found = turns(records)
            parts = at.replace(found, [(TURNS, None)], "record_id", [done], Positions(0, target.records))
        step.rows_out = sum(parts.values())


def converse(at: Context, target: Positions) -> set[str]:
    """`traces`, `spans` and `handoffs` of every conversation in which something happened; their days."""
    from postroom.pipeline.silver.conversations import conversations

    tables = [(TRACES, None), (SPANS, "spans"), (HANDOFFS, "handed")]
    positions = [at.lake.positions(table) for table, _ in tables]
    done = Positions(min(p.ledger for p in positions), min(p.records for p in positions))
    if done.covers(target):
        return set()
    lives, turns = at.lake.files(MESSAGE_LIFE), at.lake.files(TURNS)
    with at.log.step("conversations", done.ledger, target.ledger) as step:
        ids = _touched(lives, turns, done) if at.lake.files(TRACES) else None
        began: pa.Table | None = None
        if ids is not None:
            began, first = _kept(at, ids)
            lives = [file for file in lives if (file.cut or "") >= first]
            turns = [file for file in turns if (file.cut or "") >= first]
        with watched(at.spark, at.told, "conversations", sum(file.rows for file in lives)):
            life, turn = at.frame(MESSAGE_LIFE, lives), at.frame(TURNS, turns)
            kept = None
            if ids is not None:
                from pyspark.sql import functions as F

                from postroom.pipeline.silver.conversations import trace_id

                wanted = F.broadcast(at.spark.createDataFrame(pa.table({"trace_id": ids})))
                life = life.withColumn("trace_id", trace_id()).join(wanted, "trace_id", "left_semi")
                life = life.drop("trace_id")
                kept = F.broadcast(at.spark.createDataFrame(began))
            rows = conversations(life, turn, kept)
            parts = at.replace(rows, tables, "trace_id", positions, target, fresh=ids is None)
        step.rows_in, step.rows_out = sum(file.rows for file in lives), sum(parts.values())
    return set(parts)


def _touched(lives: list[LakeFile], turns: list[LakeFile], done: Positions) -> pa.Array | None:
    """The conversations that have something new; None when they are too many to look up."""
    changed = read_columns(
        newer(lives, "last_seq", done.ledger), MESSAGE_LIFE, ["message_id", "correlation_id", "last_seq"]
    )
    changed = changed.filter(pc.greater(changed["last_seq"], done.ledger))
    ids = [pc.coalesce(changed["correlation_id"], changed["message_id"])]
    if turns:
        names = ["record_id", "correlation_id", "message_id"]
        taken = read_columns(newer(turns, "record_id", done.records), TURNS, names)
        taken = taken.filter(pc.greater(taken["record_id"], done.records))
        ids.append(pc.coalesce(taken["correlation_id"], taken["message_id"]))
    found = pc.unique(pa.chunked_array([chunk for each in ids for chunk in each.chunks], pa.string()))
    found = found.drop_null()
    return None if len(found) > MANY else found


def _kept(at: Context, ids: pa.Array) -> tuple[pa.Table, str]:
    """Under which day each of them is kept, and the first day from which their messages must be read."""
    rows: list[pa.Table] = []
    for file in at.lake.files(TRACES):
        names = read_columns([file], TRACES, ["trace_id"])["trace_id"]
        hit = names.filter(pc.is_in(names, value_set=ids))
        if len(hit):
            day = date.fromisoformat(file.cut or "1970-01-01")
            rows.append(pa.table({"trace_id": hit, "day": pa.array([day] * len(hit), pa.date32())}))
    schema = pa.schema([("trace_id", pa.string()), ("day", pa.date32())])
    began = pa.concat_tables(rows).cast(schema) if rows else schema.empty_table()
    days = began["day"].to_pylist()
    first = (min(days) - timedelta(days=1)).isoformat() if days else ""
    return began, first
