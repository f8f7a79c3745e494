"""No table of the schema grows for ever: each has a rule, and what the pruner looks for has an index."""

from pathlib import Path

import pytest

from postroom.stores.sql.tables import BOUNDED_BY
from postroom.stores.sqlite import SqliteStore

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "retention.md"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory):
    store = SqliteStore(tmp_path_factory.mktemp("retention") / "room.db")
    yield store
    store.close()


def tables(store: SqliteStore) -> set[str]:
    rows = store._db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    )
    return {str(name) for (name,) in rows}


def test_every_table_says_what_bounds_it(store: SqliteStore) -> None:
    assert tables(store) == set(BOUNDED_BY)


def test_the_page_about_retention_names_every_table(store: SqliteStore) -> None:
    text = PAGE.read_text("utf-8")
    missing = {name for name in tables(store) if f"`{name}`" not in text}
    assert not missing
