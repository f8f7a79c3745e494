"""Clocks that are wrong and lakes of an older version: the tables are those of a lake that nothing disturbed."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from postroom.clock import SECOND, ManualClock
from postroom.pipeline.lake.files import FileWriter
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.reading import read_batches
from postroom.pipeline.lake.tables import HANDOFFS, MESSAGES, RECORDS, SPANS, TRACES, Table
from postroom.pipeline.sources.sqlite import SqliteSource
from postroom.runtime import open_sync
from tests.spark.judge import judge_gold
from tests.spark.lakes import COMPARED, END, copied, copy_of, fill, rows, same

DAY = 86_400


def work_at(store: SqliteSource, after_s: float, number: int) -> None:
    """Somebody whose clock is off by so much ends what is open, and leaves something open again."""
    clock = ManualClock(END + round(after_s * SECOND))
    with open_sync(
        f"sqlite:///{store.path}", clock=clock, housekeeping=False, actor=f"clock {number}"
    ) as room:
        for message in room.claim("shop/orders", limit=4):
            clock.advance(2)
            room.complete(message)
        for each in range(5):
            room.publish(
                "shop/orders", {"order": f"{number}-{each}"}, type="order", correlation_id="all clocks"
            )
            clock.advance(1)


def test_clocks_that_are_days_ahead_or_behind_change_no_sum_and_lose_no_row(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    """What was taken in while a clock was wrong is added to later, by one that is days behind it."""
    store, lake = copy_of(month, tmp_path), copied(filled, tmp_path / "lake")
    work_at(store, 40 * DAY, 1)
    work_at(store, -3 * DAY, 2)
    fill(spark, lake, store)
    work_at(store, 60, 3)
    fill(spark, lake, store)
    whole = Lake(str(tmp_path / "whole"))
    fill(spark, whole, store)
    same(lake, whole)
    judge_gold(lake)


def rewrite_as(lake: Lake, table: Table, before: Table) -> None:
    """The table as an earlier version wrote it: in its shape, and without the columns that it did not have."""
    old, files = lake.snapshot(table).positions, lake.files(table)
    kept = [(file.cut, read_file(file.uri)) for file in files]
    shutil.rmtree(f"{lake.folder}/{table.name}")
    written = []
    for cut, values in kept:
        where = (before.cut, cut or "") if before.cut else None
        schema = pa.schema([field for field in before.schema if field.name != before.cut])
        writer = FileWriter(lake.uri(before), before.schema, where, before.tracked)
        writer.write(
            pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in values], schema)
        )
        written.append(writer.close())
    lake.commit(before, written, old)


def read_file(uri: str) -> list[dict[str, Any]]:
    return [row for batch in read_batches(uri) for row in batch.to_pylist()]


def older(table: Table, without: str, shape: int) -> Table:
    schema = pa.schema([field for field in table.schema if field.name != without])
    key = tuple(name for name in table.key if name != without)
    return msgspec.structs.replace(table, schema=schema, shape=shape, key=key)


def test_a_lake_of_an_older_version_comes_out_as_one_that_was_never_older(
    spark: Any, later: SqliteSource, filled: Lake, filled_later: Lake, tmp_path: Path
) -> None:
    """Its conversations knew no tenant, and its records not whether something was taken out of them."""
    lake = copied(filled, tmp_path / "lake")
    for table in (SPANS, HANDOFFS, TRACES):
        assert table.shape > 1
        rewrite_as(lake, table, older(table, "tenant", table.shape - 1))
    rewrite_as(lake, RECORDS, older(RECORDS, "redacted", RECORDS.shape))
    assert lake.snapshot(SPANS).outgrown
    fill(spark, lake, later)
    unknown = {row["id"] for row in rows(filled, RECORDS)}
    assert {row["id"] for row in rows(lake, RECORDS) if row.get("redacted") is None} == unknown
    bare = [{**row, "redacted": None} for row in rows(filled_later, RECORDS)]
    assert [{**row, "redacted": None} for row in rows(lake, RECORDS)] == bare
    same(lake, filled_later, tuple(each for each in COMPARED if each not in (RECORDS, MESSAGES)))
    judge_gold(lake)
