"""Other engines know the lake by a file of SQL."""

from datetime import date
from pathlib import Path

import duckdb
import pytest

from postroom.pipeline.errors import LakeMissing
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.tables import ALL, LEDGER, MESSAGE_LIFE, TRACES
from postroom.pipeline.serving.catalog import render_catalog
from tests.pipeline.tiny import put


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(str(tmp_path / "Ada's lake"))
    put(lake, LEDGER, {"seq": 1, "time": 1, "type": "message.published"})
    put(lake, MESSAGE_LIFE, {"message_id": "a", "day": date(2026, 11, 1), "last_seq": 1})
    old = lake.files(MESSAGE_LIFE)
    put(lake, MESSAGE_LIFE, {"message_id": "b", "day": date(2026, 11, 2), "last_seq": 1})
    lake.commit(MESSAGE_LIFE, [], Positions(2, 2), removed=old)
    lake.commit(TRACES, [], Positions(1, 1))
    return lake


def test_duckdb_reads_what_is_in_the_tables_now_and_no_file_of_before(lake: Lake) -> None:
    text, count = render_catalog(lake, "duckdb-files")
    assert count == 3
    with duckdb.connect(":memory:") as db:
        db.execute(text)
        assert db.sql("SELECT message_id, day FROM silver.message_life").fetchall() == [
            ("b", date(2026, 11, 2))
        ]
        assert db.sql("SELECT seq, type FROM bronze.ledger").fetchall() == [(1, "message.published")]
        assert db.sql("SELECT * FROM silver.traces").fetchall() == []


def test_every_table_of_the_lake_has_a_view_in_a_database_with_a_file_and_in_one_without(
    tmp_path: Path,
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    for table in ALL:
        lake.commit(table, [], Positions(1, 1))
    text, count = render_catalog(lake, "duckdb-files")
    for place in (":memory:", str(tmp_path / "lake.duckdb")):
        with duckdb.connect(place) as db:
            db.execute(text)
            views = db.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
            assert sorted(name for (name,) in views) == sorted(table.short for table in ALL)
            assert db.sql("SELECT * FROM lake_memory.chunks").fetchall() == []
    assert count == len(ALL)


def test_delta_tables_are_named_by_their_place_and_said_what_they_are(lake: Lake) -> None:
    place = f"file://{lake.folder}/silver/message_life".replace("'", "''")
    assert f"SELECT * FROM delta_scan('{place}')" in render_catalog(lake, "duckdb")[0]
    assert f"silver.message_life USING delta LOCATION '{place}'" in render_catalog(lake, "spark")[0]
    trino = render_catalog(lake, "trino")[0]
    assert f"table_name => 'message_life', table_location => '{place}'" in trino
    assert "-- one row is a message:" in trino


def test_a_lake_that_is_not_there_has_no_catalog(tmp_path: Path) -> None:
    with pytest.raises(LakeMissing):
        render_catalog(Lake(str(tmp_path / "none")), "duckdb")
