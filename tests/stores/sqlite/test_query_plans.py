"""Statements use their indexes, and go on doing so: no table scan and no sorting."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from postroom.kernel.ports import QueueFilter, RecordFilter, RowFilter, ScopeFilter
from postroom.kernel.states import OPEN, TERMINAL
from postroom.stores.sql import filters
from postroom.stores.sql.facts import record_statement
from postroom.stores.sql.queues import queue_statement, scope_statement
from postroom.stores.sqlite import SqliteStore
from postroom.stores.sqlite.connection import ReadConnection
from postroom.stores.sqlite.dialect import DIALECT, SQL
from postroom.stores.sqlite.transaction import SqliteReads

# Statement → the index it must use. What is not listed inserts, or looks at all of a small table.
PLANS = {
    "rows": "sqlite_autoindex_messages_1 (id=?)",
    "stored": "sqlite_autoindex_messages_1 (id=?)",
    "archived": "sqlite_autoindex_archive_1 (id=?)",
    "keyed": "messages_by_key (<expr>=? AND idempotency_key=?)",
    "keyed_one": "messages_by_key (<expr>=? AND idempotency_key=?)",
    "row": "sqlite_autoindex_messages_1 (id=?)",
    "ready": "messages_pending (line=?)",
    "due": "messages_due (due_at>? AND due_at<?)",
    "next_due": "messages_due",
    "unfinished": "messages_by_parent (parent_id=?)",
    "insert_uniform": "VIRTUAL TABLE INDEX",
    "save_claimed": "INTEGER PRIMARY KEY",
    "save_claimed_alike": "INTEGER PRIMARY KEY",
    "save_claimed_list": "INTEGER PRIMARY KEY",
    "save_extended_list": "INTEGER PRIMARY KEY",
    "save_completed": "INTEGER PRIMARY KEY",
    "save_completed_alike": "INTEGER PRIMARY KEY",
    "save_changed": "INTEGER PRIMARY KEY",
    "save_moved": "INTEGER PRIMARY KEY",
    "rewrite_content": "INTEGER PRIMARY KEY",
    "rewrite_row": "sqlite_autoindex_messages_1 (id=?)",
    "rewrite_archived": "sqlite_autoindex_archive_1 (id=?)",
    "rewrite_key": "sqlite_autoindex_messages_1 (id=?)",
    "rewrite_archived_key": "sqlite_autoindex_archive_1 (id=?)",
    "archive": "INTEGER PRIMARY KEY",
    "drop_message": "INTEGER PRIMARY KEY",
    "drop_content": "INTEGER PRIMARY KEY",
    "prunable": "archive_by_queue (queue_id=? AND finished_at<?)",
    "prune_archive": "sqlite_autoindex_archive_1 (id=?)",
    "prune_standing": "PRIMARY KEY (message_id=?)",
    "counts": "PRIMARY KEY (queue_id=?)",
    "events": "INTEGER PRIMARY KEY",
    "event_hash": "INTEGER PRIMARY KEY",
    "events_about": "INTEGER PRIMARY KEY",
    "chain": "PRIMARY KEY (queue_id=? AND subscription_id=?)",
    "last_prunable_event": "INTEGER PRIMARY KEY",
    "prunable_budget_events": "INTEGER PRIMARY KEY",
    "prune_ledger": "INTEGER PRIMARY KEY",
    "set_anchor": "PRIMARY KEY",
    "drop_standing_budget": "PRIMARY KEY (tenant=? AND name=?)",
    "update_scope": "INTEGER PRIMARY KEY",
    "update_queue": "INTEGER PRIMARY KEY",
    "deleted_queues": "queues_deleted",
    "has_message": "messages_by_queue (queue_id=?)",
    "has_archived": "archive_by_queue (queue_id=?)",
    "has_message_from": "messages_by_queue (queue_id=?)",
    "has_archived_from": "archive_by_queue (queue_id=?)",
    "drop_queues": "INTEGER PRIMARY KEY",
    "drop_figures": "PRIMARY KEY (queue_id=?)",
    "drop_idle_figures": "figures_idle",
    "drop_scopes": "INTEGER PRIMARY KEY",
    "subscriptions_of": "sqlite_autoindex_subscriptions_1 (queue_id=?)",
    "subscriptions_by_id": "INTEGER PRIMARY KEY",
    "drop_subscription": "INTEGER PRIMARY KEY",
    "fact": "PRIMARY KEY (tenant=? AND kind=? AND key=?)",
    "facts": "PRIMARY KEY (tenant=? AND kind=? AND key=?)",
    "scan": "PRIMARY KEY (tenant=? AND kind=? AND key>? AND key<?)",
    "scan_by_age": "documents_of_kind (kind=? AND (updated_at,tenant,key)>(?,?,?) AND updated_at<?)",
    "scan_gone": "documents_gone (updated_at<?)",
    "fact_changes": "PRIMARY KEY (tenant=? AND kind=?)",
    "drop_fact": "PRIMARY KEY (tenant=? AND kind=? AND key=?)",
    "newest_record": "",
    "superseded": "records_by_kind (tenant=? AND kind=? AND key=? AND rowid>?)",
    "drop_records": "INTEGER PRIMARY KEY",
    "prune_audit": "INTEGER PRIMARY KEY",
    "chunks": "PRIMARY KEY (stream_id=? AND number>?)",
    "drop_chunks": "PRIMARY KEY (stream_id=?)",
    "budgets_by_name": "PRIMARY KEY (tenant=? AND name=?)",
    "budgets": "PRIMARY KEY (tenant=? AND name>? AND name<?)",
    "frozen_budgets": "accounts_frozen (tenant=? AND name>? AND name<?)",
    "reservations": "PRIMARY KEY (tenant=? AND holder=?)",
    "reservations_like": "PRIMARY KEY (tenant=? AND holder>? AND holder<?)",
    "drop_reservations": "PRIMARY KEY (tenant=? AND holder=?)",
    "holds": "holds_of_account (tenant=? AND account=?)",
    "drop_hold": "sqlite_autoindex_holds_1 (message_id=?)",
    "drop_holds": "holds_of_account (tenant=? AND account=?)",
    "prune_settlements": "settlements_by_age (at<?)",
    "prune_reservations": "reservations_by_age (expires_at<?)",
    "prune_holds": "holds_by_age (until<?)",
    "unused_budgets": "accounts_by_age (updated_at<?)",
    "drop_budget": "PRIMARY KEY (tenant=? AND name=?)",
    "retime_budget": "PRIMARY KEY (tenant=? AND name=?)",
}
# These look at everything there is, and are asked for rarely: to verify, to prune the ledger, to erase.
WHOLE = {"standing", "standing_budgets", "all_states", "stand_messages", "forget_records", "forget_audit"}
OPEN_STATES, ENDED = tuple(sorted(OPEN)), tuple(sorted(TERMINAL - {"dead"}))

# What rows are looked for by → the index that leads to them.
FOUND = {
    "open rows of a queue": (
        RowFilter(queue_ids=(1,), states=OPEN_STATES),
        5,
        "messages_by_queue (queue_id=? AND rowid>?)",
    ),
    "dead letters of a scope": (
        RowFilter(queue_ids=(1,), states=("dead",)),
        0,
        "messages_by_queue (queue_id=?)",
    ),
    "what waits on a line": (
        RowFilter(queue_ids=(1,), line=-2, states=("delayed", "pending")),
        0,
        "messages_by_queue (queue_id=?)",
    ),
    "dead letters of a queue": (
        RowFilter(queue_ids=(1,), origin_queue_id=2, states=("dead",)),
        7,
        "messages_by_queue (queue_id=? AND rowid>?)",
    ),
    "what has waited long": (
        RowFilter(queue_ids=(1,), states=("pending",), created_before=9, score_below=9),
        7,
        "messages_by_queue (queue_id=? AND rowid>?)",
    ),
    "open deliveries": (
        RowFilter(parent_id="p", kind="delivery", states=OPEN_STATES),
        0,
        "messages_by_parent (parent_id=?)",
    ),
    "what ended": (
        RowFilter(states=ENDED, ended_before=9),
        0,
        "messages_finished (finished_at>? AND finished_at<?)",
    ),
    "what died": (
        RowFilter(states=("dead",), ended_before=9),
        0,
        "messages_dead (finished_at>? AND finished_at<?)",
    ),
    "what somebody holds": (RowFilter(states=("claimed",), claimed_by="w"), 0, "messages_due (due_at>?)"),
}
LISTED = {
    "scopes by number": scope_statement(ScopeFilter(ids=(1,)), 9, DIALECT),
    "a scope by name": scope_statement(ScopeFilter(tenant="t", slug="s"), 1, DIALECT),
    "scopes of a tenant": scope_statement(ScopeFilter(tenant="t", after=3), 9, DIALECT),
    "queues by number": queue_statement(QueueFilter(ids=(1,)), 9, DIALECT),
    "a queue by name": queue_statement(QueueFilter(tenant="t", scope="s", slug="q"), 1, DIALECT),
    "queues of a scope by name": queue_statement(QueueFilter(tenant="t", scope="s"), 9, DIALECT),
    "queues of a scope": queue_statement(QueueFilter(scope_id=1, after=(1, 5)), 9, DIALECT),
    "queues of a tenant": queue_statement(QueueFilter(tenant="t", after=(1, 5)), 9, DIALECT),
    "queues by priority": queue_statement(QueueFilter(sort="priority"), 9, DIALECT),
    "dead-letter queues": queue_statement(QueueFilter(sort="dead_letter", after=(0, 5)), 9, DIALECT),
    "queues with a retention": queue_statement(QueueFilter(sort="retention", deleted=True), 9, DIALECT),
    "all queues": queue_statement(QueueFilter(sort="any", deleted=True, after=(0, 5)), 9, DIALECT),
    "records of a key": record_statement(RecordFilter(tenant="t", kind="k", key="x"), 9, DIALECT),
    "the newest record": record_statement(
        RecordFilter(tenant="t", kind="k", key="x", newest_first=True), 1, DIALECT
    ),
    "records of a kind": record_statement(RecordFilter(kind="k", after=3), 9, DIALECT),
    "the next kind": record_statement(RecordFilter(after_kind="k"), 1, DIALECT),
    "records by number": record_statement(RecordFilter(numbers=(1,)), 1, DIALECT),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path_factory.mktemp("plans") / "room.db")
    yield store
    store.close()


def plan(store: SqliteStore, sql: str, bindings: Any = None) -> list[str]:
    if bindings is None:
        numbers = [int(number) for number in re.findall(r"\?(\d+)", sql)]
        bindings = (None,) * max(numbers, default=sql.count("?"))
    return [str(detail) for *_, detail in store._db.execute("EXPLAIN QUERY PLAN " + sql, bindings)]


def check_steps(steps: list[str]) -> None:
    """A list that was given lies in no table; what is made of it is as small."""
    given = re.compile(
        r"SCAN (wanted|json_each|w|moved|oldest|old|label)\b|SCAN .* VIRTUAL TABLE|SCAN CONSTANT ROW"
    )
    # An index that holds only what is looked for may be walked.
    partial = re.compile(
        r"SCAN .* USING (COVERING )?INDEX (messages_due|figures_idle|queues_deleted|queues_with_retention|"
        r"contents_reviews)\b"
    )
    scans = [step for step in steps if step.startswith("SCAN")]
    assert not [step for step in scans if not given.match(step) and not partial.match(step)], steps
    assert not [step for step in steps if "TEMP B-TREE" in step], steps


@pytest.mark.parametrize("name", sorted(PLANS))
def test_a_statement_uses_its_index(store: SqliteStore, name: str) -> None:
    steps = plan(store, SQL[name])
    assert any(PLANS[name] in step for step in steps), steps
    # The oldest so many of the audit are looked at in their order, whatever they are.
    check_steps([step for step in steps if (name, step) != ("prune_audit", "SCAN audit")])


@pytest.mark.parametrize("name", sorted(FOUND))
def test_rows_are_found_by_an_index(store: SqliteStore, name: str) -> None:
    wanted, after, index = FOUND[name]
    steps = plan(store, *SqliteReads(ReadConnection(store._db)).find_statement(wanted, after, 10))
    assert any(index in step for step in steps), steps
    check_steps(steps)


def test_a_conversation_is_found_by_two_indexes(store: SqliteStore) -> None:
    wanted = RowFilter(tenant="t", correlation_id="talk", states=OPEN_STATES)
    steps = plan(store, *SqliteReads(ReadConnection(store._db)).find_statement(wanted, 0, 10))
    assert any("sqlite_autoindex_messages_1 (id=?)" in step for step in steps), steps
    assert any("messages_by_correlation (correlation_id=?)" in step for step in steps), steps
    assert not any(step.startswith("SCAN") for step in steps), steps


@pytest.mark.parametrize("name", sorted(LISTED))
def test_scopes_queues_and_records_are_found_by_an_index(store: SqliteStore, name: str) -> None:
    check_steps(plan(store, *LISTED[name]))


def test_every_statement_that_searches_has_a_guard() -> None:
    searching = {name for name, sql in SQL.items() if not sql.startswith("INSERT INTO") or "SELECT" in sql}
    assert searching - WHOLE == set(PLANS)


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("after", [None, 7])
def test_reviews_are_found_in_order_by_their_index(
    store: SqliteStore, newest_first: bool, after: int | None
) -> None:
    wanted = RowFilter(scope_id=1, states=("pending", "claimed"), reviews=True, newest_first=newest_first)
    reads = SqliteReads(ReadConnection(store._db))
    steps = plan(store, *reads.page_statement(wanted, after, 10, archived=False))
    assert re.match(r"(SCAN|SEARCH) c USING INDEX contents_reviews", steps[0]), steps
    assert steps[1:] == ["SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"]


def test_the_archive_holds_only_what_has_ended() -> None:
    assert not filters.may_be_archived(RowFilter(states=OPEN_STATES))
    assert filters.may_be_archived(RowFilter())
    for state in TERMINAL:
        assert filters.may_be_archived(RowFilter(states=("pending", state)))


def test_binding_a_value_does_not_prepare_a_statement_again(tmp_path: Path) -> None:
    """SQLite peeks at bound values to match partial indexes unless told not to; that cost a factor of ten."""
    store = SqliteStore(tmp_path / "room.db")
    try:
        cursor = store._db.cursor()
        for line in range(3):
            cursor.execute(SQL["ready"], (line, 1), can_cache=True)
        before = store._db.cache_stats()
        for line in range(50):
            cursor.execute(SQL["ready"], (line, 1), can_cache=True)
        assert store._db.cache_stats()["misses"] == before["misses"]
        assert store._db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1
    finally:
        store.close()
