"""Rows of claims that a process remembers: the latest, each once, and only for who has the token."""

from typing import Any

from postroom.kernel.held_rows import HeldRows
from postroom.kernel.rows import ROW_FIELDS, Row


def _row(name: str, token: str = "1-a") -> Row:
    fields: dict[str, Any] = dict.fromkeys(ROW_FIELDS)
    return Row(**{**fields, "id": name, "token": token})


def test_only_the_latest_are_remembered() -> None:
    held = HeldRows(most=2)
    held.keep([_row("a"), _row("b")])
    held.keep([_row("a"), _row("c")])
    assert [row.id for row in held.take([("a", "1-a"), ("b", "1-a"), ("c", "1-a")])] == ["a", "c"]


def test_a_row_is_handed_out_once_and_as_a_copy() -> None:
    held, kept = HeldRows(), _row("a")
    held.keep([kept])
    [row] = held.take([("a", "1-a")])
    assert row == kept
    assert row is not kept
    assert held.take([("a", "1-a")]) == []


def test_another_token_gets_nothing() -> None:
    held = HeldRows()
    held.keep([_row("a", "2-b")])
    assert held.take([("a", "1-a")]) == []
