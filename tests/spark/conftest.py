"""One Spark session for all tests of the pipeline, and a small made-up month with its lake."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from postroom.clock import ManualClock
from postroom.pipeline.generator.month import Plan, generate
from postroom.pipeline.jobs.run import Options, Summary, run
from postroom.pipeline.jobs.session import Where, start, stop
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import Table
from postroom.pipeline.lake.upsert import read_batches
from postroom.pipeline.sources.sqlite import SqliteSource, open_source
from tests.pipeline.object_store import object_store

END = 1_794_700_800 * 10**6


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All in one process of the test run, so that there is one session."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def bucket() -> Iterator[str]:
    """An object store on loopback. It is there before the session, whose workers learn its address at birth."""
    with object_store() as url:
        yield url


@pytest.fixture(scope="session")
def spark(bucket: str) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own, while it starts
        session = start(Where(master="local[2]", quick=True, partitions=2, memory_mb=768), "postroom-tests")
    yield session
    stop(session)


@pytest.fixture(scope="session")
def month(tmp_path_factory: pytest.TempPathFactory) -> SqliteSource:
    """Two days of mail."""
    path = tmp_path_factory.mktemp("month") / "room.db"
    generate(path, Plan(end=END, days=2, per_day=110, seed=7))
    return open_source(str(path))


@pytest.fixture(scope="session")
def filled(spark: Any, month: SqliteSource, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The lake of that month, made in one run."""
    lake = Lake(str(tmp_path_factory.mktemp("lake") / "lake"))
    fill(spark, lake, month)
    return lake


def fill(spark: Any, lake: Lake, source: SqliteSource, **options: Any) -> Summary:
    return run(spark, lake, source, ManualClock(), Options(**options))


def rows(lake: Lake, table: Table) -> list[dict[str, Any]]:
    """All rows of a table, in the order of its key, with the part of the file names that is a column."""
    found = []
    for file in lake.files(table):
        for batch in read_batches(file.uri):
            for row in batch.to_pylist():
                if table.cut:
                    row[table.cut] = file.cut
                found.append(row)
    return sorted(found, key=lambda row: tuple(str(row[name]) for name in table.key))


def frame(spark: Any, table: Table, values: list[dict[str, Any]]) -> Any:
    """A tiny frame with a table's declared columns; what is not said is null."""
    full = [{name: row.get(name) for name in table.schema.names} for row in values]
    return spark.createDataFrame(pa.Table.from_pylist(full, table.schema))


def copy_of(month: SqliteSource, folder: Path) -> SqliteSource:
    """The month in a file of its own, to be changed."""
    import apsw

    folder.mkdir(exist_ok=True)
    target = folder / "copy.db"
    source = apsw.Connection(month.path, flags=apsw.SQLITE_OPEN_READONLY)
    copy = apsw.Connection(str(target))
    with copy.backup("main", source, "main") as backup:
        backup.step()
    source.close()
    copy.close()
    return open_source(str(target))
