"""One Spark session for all tests of the pipeline, and a small made-up month with its lake.

A whole run costs seconds, however few its rows. So lakes are filled once, here, and tests take copies.
"""

import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from postroom.pipeline.generator.month import MonthPlan, generate
from postroom.pipeline.jobs.session import Where, start, stop
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.sources.sqlite import SqliteSource, open_source
from tests.object_store import object_store
from tests.spark.campaign import THIRTY, Campaign
from tests.spark.lakes import END, copied, copy_of, fill, happen, leave_open


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """All in one process of the test run, so that there is one session; last who only wait for the dying.

    Groups must be known before xdist looks for them, and the order is the last word.
    """
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))
    yield
    items.sort(key=_waits)


def _waits(item: pytest.Item) -> bool:
    return "thirty" in getattr(item, "fixturenames", ()) and "test_thirty" in item.name


@pytest.fixture(scope="session", autouse=True)
def thirty(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Campaign | None]:
    """Thirty deaths beside the other tests, if any test is to ask for them: they leave a core idle."""
    if not any(map(_waits, request.session.items)):
        yield None
        return
    campaign = Campaign(tmp_path_factory.mktemp("thirty"), THIRTY)
    yield campaign
    campaign.end()


@pytest.fixture(scope="session")
def bucket() -> Iterator[str]:
    """An object store on loopback. It is there before the session, whose workers learn its address at birth."""
    with object_store() as url:
        yield url


@pytest.fixture(scope="session")
def spark(bucket: str) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own, while it starts
        session = start(Where(master="local[2]", partitions=2, memory_mb=768), "postroom-tests")
    yield session
    stop(session)


@pytest.fixture(scope="session")
def month(tmp_path_factory: pytest.TempPathFactory) -> SqliteSource:
    """Two days of mail, of which not everything has ended."""
    path = tmp_path_factory.mktemp("month") / "room.db"
    generate(path, MonthPlan(end=END, days=2, per_day=110, seed=7))
    store = open_source(str(path))
    leave_open(store)
    return store


@pytest.fixture(scope="session")
def filled(spark: Any, month: SqliteSource, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The lake of that month, made in one run."""
    lake = Lake(str(tmp_path_factory.mktemp("lake") / "lake"))
    fill(spark, lake, month)
    return lake


@pytest.fixture(scope="session")
def later(month: SqliteSource, tmp_path_factory: pytest.TempPathFactory) -> SqliteSource:
    """The month, and what happened in the hour after it."""
    store = copy_of(month, tmp_path_factory.mktemp("later"))
    happen(store)
    return store


@pytest.fixture(scope="session")
def filled_later(spark: Any, later: SqliteSource, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The lake of the month and the hour after it, made in one run."""
    lake = Lake(str(tmp_path_factory.mktemp("lake") / "lake"))
    fill(spark, lake, later)
    return lake


@pytest.fixture(scope="session")
def grown(spark: Any, filled: Lake, later: SqliteSource, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The lake of the month, to which a second run has added the hour after it."""
    lake = copied(filled, tmp_path_factory.mktemp("lake") / "lake")
    assert 0 < fill(spark, lake, later).events < 150
    return lake
