"""The whole run on an object store: bronze to memory over the real protocol, with nothing but what pip installs."""

from typing import Any

import pyarrow.fs as pafs

from postroom.pipeline.lake.files import filesystem
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import BRONZE
from postroom.pipeline.serving.engine import engine
from postroom.pipeline.serving.insights import overview, period
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.spark.lakes import fill, fill_bronze, same, same_later


def test_an_empty_bucket_takes_in_what_a_folder_does(
    spark: Any, bucket: str, month: SqliteSource, filled: Lake
) -> None:
    lake = Lake(f"{bucket}/new")
    fill_bronze(spark, lake, month)
    same(lake, filled, BRONZE)


def test_what_is_new_and_what_is_built_anew_come_out_as_in_a_folder(
    spark: Any, bucket: str, filled: Lake, later: SqliteSource, filled_later: Lake
) -> None:
    """The lake of the month is put there as it is. A run adds to it; another makes all but bronze from bronze."""
    lake = Lake(f"{bucket}/room")
    there, path = filesystem(lake.location)
    pafs.copy_files(str(filled.folder), path, pafs.LocalFileSystem(), there)
    same(lake, filled)
    assert fill(spark, lake, later).events > 0
    same_later(lake, filled_later)
    with engine(lake) as light, engine(filled_later) as other:
        assert overview(light, period(light)) == overview(other, period(other))
    fill(spark, lake, later, refresh=True)
    same_later(lake, filled_later)
