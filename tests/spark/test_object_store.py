"""The whole run on an object store: bronze to memory over the real protocol, with nothing but what pip installs."""

from pathlib import Path
from typing import Any

from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import MESSAGE_LIFE, TRACES
from postroom.pipeline.serving.engine import engine
from postroom.pipeline.serving.insights import overview, period
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.spark.conftest import copy_of, fill, rows
from tests.spark.test_exactly_once import same
from tests.spark.test_incremental import happen


def test_a_run_and_what_is_new_after_it_come_out_as_in_a_folder(
    spark: Any, bucket: str, month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    lake = Lake(f"{bucket}/room")
    fill(spark, lake, month)
    same(lake, filled)
    with engine(lake) as light, engine(filled) as other:
        assert overview(light, period(light)) == overview(other, period(other))
    store = copy_of(month, tmp_path)
    happen(store)
    assert fill(spark, lake, store).events > 0
    assert len(rows(lake, MESSAGE_LIFE)) > len(rows(filled, MESSAGE_LIFE))
    before = rows(lake, TRACES)
    fill(spark, lake, store, refresh=True)
    assert rows(lake, TRACES) == before
