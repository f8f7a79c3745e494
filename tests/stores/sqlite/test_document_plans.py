"""Listing documents searches by key: no walk past others, and no sorting."""

from pathlib import Path

from postroom.stores.sqlite import SqliteStore
from postroom.stores.sqlite.documents import LISTED


def test_a_list_of_documents_is_a_search(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "room.db")
    try:
        rows = store._db.execute("EXPLAIN QUERY PLAN " + LISTED, (None,) * 6)
        details = [detail for *_, detail in rows]
    finally:
        store.close()
    assert details == ["SEARCH documents USING PRIMARY KEY (tenant=? AND kind=? AND key>? AND key<?)"]
