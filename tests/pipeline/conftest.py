import pytest

from postroom.pipeline.generator.month import MonthPlan, generate
from postroom.pipeline.sources.sqlite import SqliteSource, open_source

END = 1_794_700_800 * 10**6


@pytest.fixture(scope="session")
def month(tmp_path_factory: pytest.TempPathFactory) -> SqliteSource:
    """A day of mail."""
    path = tmp_path_factory.mktemp("month") / "room.db"
    generate(path, MonthPlan(end=END, days=1.5, per_day=300, seed=3))
    return open_source(str(path))
