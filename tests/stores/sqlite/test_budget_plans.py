"""Accounts are found by their indexes, however many there are."""

from pathlib import Path

import apsw
import pytest

from postroom.stores.sqlite import SqliteStore, budgets
from postroom.stores.sqlite.budgets import SqliteBudgetWrites

SINGLE = {
    "an account": (budgets._ONE, (1, "t", "n")),
    "accounts by name": (budgets._NAMED, (1, "t", "[]")),
    "accounts by prefix": (budgets._LISTED, (1, "t", "p", "", 9)),
    "frozen accounts": (budgets._FROZEN, (1, "t", "p", "", 9)),
    "a conversation": (budgets.OPEN_OF, ("t", "talk")),
    **{f"pruning {n}": (statement, (1, 9)) for n, statement in enumerate(budgets._PRUNE)},
}


@pytest.fixture
def db(tmp_path: Path) -> apsw.Connection:
    path = tmp_path / "room.db"
    SqliteStore(path).close()
    return apsw.Connection(str(path))


def plan(db: apsw.Connection, sql: str, bindings: tuple[object, ...]) -> list[str]:
    return [str(row[3]) for row in db.execute("EXPLAIN QUERY PLAN " + sql, bindings)]


@pytest.mark.parametrize("name", SINGLE)
def test_no_statement_scans_a_table(db: apsw.Connection, name: str) -> None:
    steps = plan(db, *SINGLE[name])
    # A list that was given is small, and lies in no table.
    scans = [step for step in steps if step.startswith("SCAN") and "json_each" not in step]
    assert scans == [], steps
    assert not any("TEMP B-TREE" in step for step in steps), steps


def test_reservations_of_a_lane_are_found_by_their_beginning(db: apsw.Connection) -> None:
    seen: list[str] = []
    db.exec_trace = lambda _cursor, sql, _bindings: bool(seen.append(sql)) or True
    books = SqliteBudgetWrites()
    books._db = db
    assert books.reservations_like("t", "visit/coder/") == []
    db.exec_trace = None
    [sql] = seen
    assert plan(db, sql, ("t", "p"))[0].startswith("SEARCH")
