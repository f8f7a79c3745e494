"""Days that are built once more come out as they were meant, and no other day changes."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from postroom.clock import ManualClock
from postroom.pipeline.errors import DaysGone
from postroom.pipeline.jobs.backfill import DayRange, backfill
from postroom.pipeline.jobs.retention import day_of, retain
from postroom.pipeline.jobs.run import Options
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.files import FileWriter
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.reading import read_declared
from postroom.pipeline.lake.tables import AGENT_DAY, MESSAGE_LIFE, SILVER, TRACES, TURNS, Table
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.spark.lakes import END, copied, rows, same


def spoil(lake: Lake, table: Table, column: str, value: Any, day: date) -> None:
    """All rows of a day say the same wrong thing, and one row of its file is missing where files are days."""
    cut = day.isoformat()[: 7 if table.cut == "month" else 10]
    for file in [file for file in lake.files(table) if file.cut == cut]:
        writer = FileWriter(lake.uri(table), table.schema, (table.cut or "", cut), table.tracked)
        for part in read_declared(file.uri, table.schema):
            place = part.schema.get_field_index(column)
            wrong = pa.scalar(value, part.schema.field(column).type)
            if table.cut == "month":
                hit = pc.equal(part["day"], pa.scalar(day, pa.date32()))
                writer.write(part.set_column(place, column, pc.if_else(hit, wrong, part[column])))
            else:
                writer.write(part.set_column(place, column, pa.repeat(wrong, part.num_rows)).slice(1))
        lake.commit(table, [writer.close()], None, removed=[file])


def test_days_that_went_wrong_come_out_right_and_others_are_not_touched(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    lake = copied(filled, tmp_path / "lake")
    days = sorted(
        {row["day"] for row in rows(filled, MESSAGE_LIFE)} & {row["day"] for row in rows(filled, TRACES)}
    )
    cut = days[-2]
    wrong = date.fromisoformat(cut)
    spoil(lake, MESSAGE_LIFE, "queue", "nonsense", wrong)
    spoil(lake, TURNS, "agent", "nobody", wrong)
    spoil(lake, TRACES, "depth", 99, wrong)
    spoil(lake, AGENT_DAY, "messages", 1_000_000, wrong)
    others = {file.path for table in SILVER for file in lake.files(table) if file.cut != cut}
    done = backfill(spark, lake, month, ManualClock(END), DayRange(wrong, wrong), Options(few=0))
    assert done.rows[MESSAGE_LIFE.name] == sum(row["day"] == cut for row in rows(filled, MESSAGE_LIFE))
    assert done.broken == []
    same(lake, filled, (*SILVER, AGENT_DAY))
    assert others <= {file.path for table in SILVER for file in lake.files(table)}
    assert all(lake.positions(table) == filled.positions(table) for table in SILVER)


def test_days_that_bronze_let_go_are_refused(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    lake = copied(filled, tmp_path / "lake")
    retain(lake, ManualClock(END), keep_s=86_400)
    gone = day_of(END) - timedelta(days=30)
    before = {table.name: lake.files(table) for table in SILVER}
    with pytest.raises(DaysGone, match="cannot be built again"):
        backfill(spark, lake, month, ManualClock(END), DayRange(gone, gone))
    assert {table.name: lake.files(table) for table in SILVER} == before
