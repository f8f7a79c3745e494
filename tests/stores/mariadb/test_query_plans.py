"""Claims and what comes due are found by one index that never changes under them, however much there is."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from postroom.stores.mariadb import MariadbStore
from postroom.stores.mariadb.connection import MariadbReadConnection, Pairs
from postroom.stores.mariadb.dialect import WRITE_SQL
from tests.conftest import mariadb_url

PENDING, ENDED = 3000, 3000


@pytest.fixture
def db(tmp_path: Path) -> Iterator[MariadbReadConnection]:
    """A queue with a great many messages, pending and completed."""
    store = MariadbStore(mariadb_url(tmp_path))
    with closing(store), closing(store._connect()) as found:
        connection = MariadbReadConnection(found)
        insert = (
            "INSERT INTO messages (seq, id, tenant, scope_id, queue_id, line, state, sort_key, due_at,"
            " message_type, priority_tier, priority_score, created_at, updated_at, hop, attempts, claims,"
            " finished_at)"
            " SELECT ? + seq, CONCAT('m', ? + seq), 'default', 1, 1, 1, ?, seq, ?,"
            " 'x', 'normal', 0, 0, 0, 0, 0, 0, ?"
            " FROM seq_1_to_3000"
        )
        connection.fetch(insert, (0, 0, "pending", 5, None))
        connection.fetch(insert, (PENDING, PENDING, "completed", None, 7))
        connection.fetch(
            "INSERT INTO contents (seq, content_type, source_type) SELECT seq, 'x', 'x' FROM messages"
        )
        connection.fetch("ANALYZE TABLE messages, contents, ready, due")
        yield connection


def rows_read(db: MariadbReadConnection, name: str, *bindings: Any) -> int:
    """How many rows the server touched, as it counts them itself. It also counts what it reads about tables
    that are opened for the first time, so they are opened before."""
    for opening in ("SELECT 1", "FLUSH STATUS"):
        db.fetch(opening)
        db.fetch("START TRANSACTION")
        db.fetch(WRITE_SQL[name], bindings)
        read = db.fetch("SHOW SESSION STATUS LIKE 'Handler_read%'")
        db.fetch("ROLLBACK")
    return sum(int(count) for _, count in read)


@pytest.mark.parametrize(
    ("name", "bindings", "most"),
    [
        ("ready", (1, 10), 40),
        ("due", (6, 10), 30),
        ("rows", (["m1", "m2", "m3"],), 10),
        ("lock_numbers", ([1, 2, 3],), 10),
        ("waiting_lines", ([1, 2, 3],), 10),
        ("next_due", (), 3),
        ("keyed", (Pairs([(1, "a")]),), 12),
    ],
)
def test_a_hot_statement_reads_what_it_returns(
    db: MariadbReadConnection, name: str, bindings: tuple[Any, ...], most: int
) -> None:
    assert rows_read(db, name, *bindings) <= most


def test_small_tables_hold_what_is_pending_and_due_and_nothing_else(db: MariadbReadConnection) -> None:
    assert db.fetch("SELECT count(*) FROM ready") == [(PENDING,)]
    assert db.fetch("SELECT count(*) FROM due") == [(PENDING,)]
    db.fetch("UPDATE messages SET state = 'claimed', due_at = 9 WHERE seq <= 10")
    db.fetch("DELETE FROM messages WHERE seq > 10 AND seq <= 30")
    assert db.fetch("SELECT count(*) FROM ready") == [(PENDING - 30,)]
    assert db.fetch("SELECT count(*), min(due_at), max(due_at) FROM due") == [(PENDING - 20, 5, 9)]
    wrong = db.fetch(
        "SELECT 1 FROM ready r LEFT JOIN messages m ON m.seq = r.seq AND m.state = 'pending'"
        " WHERE m.seq IS NULL"
    )
    assert wrong == []
