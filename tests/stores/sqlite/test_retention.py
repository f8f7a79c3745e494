"""No table of the schema grows for ever: each has a rule, and what the pruner looks for has an index."""

from pathlib import Path

import pytest

from postroom.stores.sqlite import SqliteStore, pruning
from tests.stores.sqlite.test_query_plans import plan

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
    assert tables(store) == set(pruning.BOUNDED_BY)


def test_the_page_about_retention_names_every_table(store: SqliteStore) -> None:
    text = PAGE.read_text("utf-8")
    missing = {name for name in tables(store) if f"`{name}`" not in text}
    assert not missing


@pytest.mark.parametrize(
    ("sql", "index"),
    [
        (
            pruning._UNTOUCHED,
            "documents_of_kind (kind=? AND (updated_at,tenant,key)>(?,?,?) AND updated_at<?)",
        ),
        (pruning._GONE, "documents_gone (updated_at<?)"),
        (pruning._OLD_RECORDS, "records_of_kind (kind=? AND rowid>?)"),
        (pruning._NEWER, "records_by_kind (tenant=? AND kind=? AND key=? AND rowid>?)"),
        ("SELECT min(kind) FROM records WHERE kind > ?", "records_of_kind (kind>?)"),
        ("SELECT 1 FROM accounts WHERE updated_at < ? AND (frozen IS NULL OR final)", "accounts_by_age"),
    ],
)
def test_the_pruner_searches_by_an_index(store: SqliteStore, sql: str, index: str) -> None:
    steps = plan(store, sql)
    assert any(index in step for step in steps), steps
