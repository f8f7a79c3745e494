"""The lake of a store on a server is that of the same store in a file: executors read the server themselves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.sources.sqlite import SqliteSource, open_source
from postroom.runtime.store_move import move_store
from tests.conftest import mariadb_url, postgres_url
from tests.spark.lakes import copy_of, fill, same
from tests.stores.transfer.test_moving import silent


@pytest.mark.slow
@pytest.mark.parametrize("place", [postgres_url, mariadb_url], ids=["postgres", "mariadb"])
def test_the_lake_is_the_same(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path, place: Callable[[Path], str]
) -> None:
    url = place(tmp_path)
    move_store(f"sqlite:///{copy_of(month, tmp_path).path}", url, silent)
    source = open_source(url)
    assert source.snapshot().head > 1000
    lake = Lake(str(tmp_path / "lake"))
    fill(spark, lake, source)
    same(lake, filled)
