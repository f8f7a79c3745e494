"""The hot statements use their indexes, and go on doing so: no table scan, no sorting."""

import re
from pathlib import Path

import pytest

from postroom.stores.sqlite import SqliteStore
from postroom.stores.sqlite.statements import SQL

# Statement → the index it must use. What is not listed is a plain insert or a lookup by rowid.
PLANS = {
    "row": "sqlite_autoindex_messages_1",
    "rows": "sqlite_autoindex_messages_1",
    "stored": "sqlite_autoindex_messages_1",
    "archived": "sqlite_autoindex_archive_1",
    "pending": "messages_pending (line=?)",
    "due": "messages_due (due_at>? AND due_at<?)",
    "next_due": "messages_due",
    "claimed_by": "messages_due (due_at>?)",
    "by_key": "messages_by_key (<expr>=? AND idempotency_key=?)",
    "archived_by_key": "archive_by_key (<expr>=? AND idempotency_key=?)",
    "open_rows": "messages_by_queue (queue_id=? AND rowid>?)",
    "rows_in_state": "messages_by_queue (queue_id=?)",
    "originals": "messages_by_queue (queue_id=?)",
    "deliveries": "messages_by_parent (parent_id=?)",
    "open_deliveries": "messages_by_parent (parent_id=?)",
    "on_line": "messages_by_queue (queue_id=?)",
    "ended_in": "messages_by_queue (queue_id=?)",
    "dead_from": "messages_by_queue (queue_id=?)",
    "aging": "messages_by_queue (queue_id=? AND rowid>?)",
    "finished": "messages_finished (finished_at>? AND finished_at<?)",
    "dead_before": "messages_by_queue (queue_id=?)",
    "prunable": "archive_by_queue (queue_id=? AND finished_at<?)",
    "prune_archive": "sqlite_autoindex_archive_1",
    "insert_alike": "VIRTUAL TABLE INDEX",
    "save": "INTEGER PRIMARY KEY",
    "save_claimed": "INTEGER PRIMARY KEY",
    "save_completed": "INTEGER PRIMARY KEY",
    "relocate": "INTEGER PRIMARY KEY",
    "content": "INTEGER PRIMARY KEY",
    "drop_message": "INTEGER PRIMARY KEY",
    "drop_content": "INTEGER PRIMARY KEY",
    "archive": "INTEGER PRIMARY KEY",
    "events": "INTEGER PRIMARY KEY",
    "event_hash": "INTEGER PRIMARY KEY",
    "prune_ledger": "INTEGER PRIMARY KEY",
    "last_prunable_event": "INTEGER PRIMARY KEY",
    "peek_count": "PRIMARY KEY",
    "chain": "PRIMARY KEY",
    "set_anchor": "PRIMARY KEY",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory):
    store = SqliteStore(tmp_path_factory.mktemp("plans") / "room.db")
    yield store
    store.close()


def plan(store: SqliteStore, sql: str) -> list[str]:
    numbers = [int(number) for number in re.findall(r"\?(\d+)", sql)]
    rows = store._db.execute("EXPLAIN QUERY PLAN " + sql, (None,) * max(numbers, default=sql.count("?")))
    return [detail for *_, detail in rows]


@pytest.mark.parametrize("name", sorted(PLANS))
def test_a_hot_statement_uses_its_index(store: SqliteStore, name: str) -> None:
    steps = plan(store, SQL[name])
    assert any(PLANS[name] in step for step in steps), steps


@pytest.mark.parametrize("name", sorted(SQL))
def test_no_statement_scans_a_table_or_sorts(store: SqliteStore, name: str) -> None:
    steps = plan(store, SQL[name])
    allowed = "SCAN wanted VIRTUAL TABLE"  # the list of ids it was given
    scans = [step for step in steps if step.startswith("SCAN") and not step.startswith(allowed)]
    assert not scans, steps
    assert not [step for step in steps if "TEMP B-TREE" in step], steps


def test_every_statement_that_searches_has_a_guard() -> None:
    searching = {name for name, sql in SQL.items() if not sql.startswith("INSERT INTO") or "SELECT" in sql}
    assert searching <= set(PLANS)


def test_binding_a_value_does_not_prepare_a_statement_again(tmp_path: Path) -> None:
    """SQLite peeks at bound values to match partial indexes unless told not to; that cost a factor of ten."""
    store = SqliteStore(tmp_path / "room.db")
    try:
        cursor = store._db.cursor()
        for line in range(3):
            cursor.execute(SQL["pending"], (line, 1), can_cache=True)
        before = store._db.cache_stats()
        for line in range(50):
            cursor.execute(SQL["pending"], (line, 1), can_cache=True)
        assert store._db.cache_stats()["misses"] == before["misses"]
        import apsw

        assert store._db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1
    finally:
        store.close()
