"""A lake on an object store: the same tables, commits and answers as in a folder, over the real protocol."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from postroom.clock import SECOND, ManualClock
from postroom.pipeline.errors import LakeMissing, LakeMoved, QueryRefused
from postroom.pipeline.jobs.maintenance import compact, vacuum
from postroom.pipeline.jobs.retention import retain
from postroom.pipeline.lake.files import FileWriter
from postroom.pipeline.lake.files import object_store as connected
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.tables import RECORDS, TRACES
from postroom.pipeline.serving.engine import engine
from postroom.pipeline.serving.status import status
from tests.object_store import object_store
from tests.pipeline.test_lake import ids, trace, written


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    connected.cache_clear()
    with object_store() as url:
        yield url
    connected.cache_clear()


@pytest.fixture
def lake(bucket: str, tmp_path: Path) -> Lake:
    return Lake(f"{bucket}/{tmp_path.name}")


def test_commits_and_positions_are_read_back(lake: Lake) -> None:
    assert lake.positions(RECORDS) == Positions(0, 0)
    lake.commit(RECORDS, [written(lake, 1, 2)], Positions(7, 2))
    lake.commit(RECORDS, [written(lake, 3)], Positions(9, 3))
    assert ids(lake) == [1, 2, 3]
    again = Lake(lake.location)
    assert again.positions(RECORDS) == Positions(9, 3)
    assert status(again, None)["tables"][0]["rows"] == 3


def test_of_two_writers_the_second_is_refused(lake: Lake) -> None:
    lake.commit(RECORDS, [written(lake, 1)], Positions(1, 1))
    stale = lake.must_open(RECORDS)
    other = Lake(lake.location)
    other.open = lambda table: stale
    lake.commit(RECORDS, [written(lake, 2)], Positions(2, 2))
    with pytest.raises(LakeMoved):
        other.commit(RECORDS, [written(lake, 2)], Positions(2, 2))
    assert ids(lake) == [1, 2]


def test_the_light_engine_answers_and_reaches_nothing_else(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    day = date(2026, 11, 1)
    rows = [dict.fromkeys(TRACES.schema.names) | trace("a", day, 3)]
    writer = FileWriter(lake.uri(TRACES), TRACES.schema, ("day", day.isoformat()), TRACES.tracked)
    writer.write(pa.Table.from_pylist(rows, TRACES.schema))
    lake.commit(TRACES, [writer.close()], Positions(1, 1))
    lake.commit(RECORDS, [written(lake, 1, 2)], Positions(1, 2))
    with engine(lake) as light:
        assert light.rows("SELECT count(*) AS n, max(id) AS last FROM records") == [{"n": 2, "last": 2}]
        found = light.rows("SELECT trace_id, day, messages FROM traces WHERE day = DATE '2026-11-01'")
        assert found == [{"trace_id": "a", "day": day, "messages": 3}]
        with pytest.raises(QueryRefused):
            light.rows(f"SELECT * FROM read_csv('{tmp_path}/secret.csv')")


def test_upkeep_changes_files_and_no_rows(lake: Lake) -> None:
    for each in (1, 2, 3):
        lake.commit(RECORDS, [written(lake, each)], Positions(each, each))
    assert compact(lake)[RECORDS.name]["files_added"] == 1
    assert vacuum(lake, keep=timedelta(0))[RECORDS.name]["files"] == 3
    assert ids(lake) == [1, 2, 3]


def test_what_is_old_leaves(lake: Lake) -> None:
    lake.commit(RECORDS, [written(lake, 1, 2, 3)], Positions(3, 3))
    clock = ManualClock(25 + 10 * SECOND)
    assert retain(lake, clock, keep_s=10)[RECORDS.name].rows == 2
    assert ids(lake) == [3]
    assert lake.positions(RECORDS) == Positions(3, 3)


def test_an_empty_bucket_is_no_lake(lake: Lake) -> None:
    with pytest.raises(LakeMissing), engine(lake):
        pass
