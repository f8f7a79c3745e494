"""What is too old leaves every layer; what is not stays, and how far the lake has come does not change."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from postroom.clock import SECOND, ManualClock
from postroom.pipeline.errors import PipelineBusy
from postroom.pipeline.jobs.retention import retain
from postroom.pipeline.lake.files import FileWriter
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.lease import hold_lease
from postroom.pipeline.lake.reading import read_batches
from postroom.pipeline.lake.tables import ALL, COST_DAY, LEDGER, RECORDS, RUNS, TRACES, Table

DAY = 86_400
NOW = int(datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()) * SECOND


def put(lake: Lake, table: Table, cut: str | None, *values: dict[str, Any]) -> None:
    writer = FileWriter(lake.uri(table), table.schema, (table.cut, cut) if table.cut else None, table.tracked)
    full = [{name: row.get(name) for name in table.schema.names} for row in values]
    writer.write(pa.Table.from_pylist(full, table.schema))
    lake.commit(table, [writer.close()], Positions(40, 4))


def count(lake: Lake, table: Table) -> int:
    return sum(batch.num_rows for file in lake.files(table) for batch in read_batches(file.uri))


def ago(days: float) -> int:
    return NOW - round(days * DAY * SECOND)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Events, records, conversations and costs of today, and of 9, 20 and 40 days ago."""
    lake = Lake(str(tmp_path / "lake"))
    moments = [ago(each) for each in (40, 20, 9, 0)]
    put(lake, LEDGER, None, *({"seq": n, "time": at} for n, at in enumerate(moments[:2], 1)))
    put(lake, LEDGER, None, *({"seq": n, "time": at} for n, at in enumerate(moments[2:], 3)))
    put(lake, RECORDS, None, *({"id": n, "created_at": at} for n, at in enumerate(moments, 1)))
    put(lake, RUNS, None, *({"started_at": datetime.fromtimestamp(at / SECOND, UTC)} for at in moments))
    for at in moments:
        day = datetime.fromtimestamp(at / SECOND, UTC).date()
        put(lake, TRACES, day.isoformat(), {"trace_id": str(at), "day": day, "last_seq": 1})
        put(lake, COST_DAY, day.isoformat()[:7], {"day": day, "month": day.isoformat()[:7]})
    return lake


def test_rows_beyond_the_age_leave_and_the_rest_stays(lake: Lake) -> None:
    done = retain(lake, ManualClock(NOW), keep_s=10 * DAY)
    assert {name: left.rows for name, left in done.items()} == {
        TRACES.name: 2, RUNS.name: 2, LEDGER.name: 2, RECORDS.name: 2,
    }  # fmt: skip
    assert [count(lake, table) for table in (LEDGER, RECORDS, TRACES, RUNS)] == [2, 2, 2, 2]
    assert [
        row["seq"] for file in lake.files(LEDGER) for b in read_batches(file.uri) for row in b.to_pylist()
    ] == [3, 4]
    assert count(lake, COST_DAY) == 4, "sums stay"
    assert lake.positions(LEDGER) == Positions(40, 4), "and nothing is taken in again"
    again = retain(lake, ManualClock(NOW), keep_s=10 * DAY)
    assert sum(left.rows for left in again.values()) == 0


def test_sums_go_when_they_are_asked_for(lake: Lake) -> None:
    done = retain(lake, ManualClock(NOW), keep_s=25 * DAY, gold=True)
    assert done[COST_DAY.name].rows == 1
    assert count(lake, COST_DAY) == 3


def test_a_dry_run_only_counts(lake: Lake) -> None:
    versions = {table.name: lake.must_open(table).version() for table in ALL if lake.exists(table)}
    done = retain(lake, ManualClock(NOW), keep_s=10 * DAY, dry_run=True)
    assert done[LEDGER.name].rows == 2
    assert {table.name: lake.must_open(table).version() for table in ALL if lake.exists(table)} == versions


def test_it_waits_for_no_run_and_none_waits_for_it(lake: Lake) -> None:
    with hold_lease(lake, ManualClock(NOW)), pytest.raises(PipelineBusy):
        retain(lake, ManualClock(NOW), keep_s=10 * DAY)


def test_of_what_has_no_time_nobody_knows_the_age(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    put(lake, RECORDS, None, {"id": 1}, {"id": 2, "created_at": ago(99)})
    assert retain(lake, ManualClock(NOW), keep_s=DAY)[RECORDS.name].rows == 1
    assert count(lake, RECORDS) == 1
