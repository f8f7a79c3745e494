"""What is gathered reaches the store once, each row as it is in the end."""

from typing import Any, cast

import pytest

from postroom.kernel.changes import Changes
from postroom.kernel.ports import Shape, Transaction
from postroom.kernel.rows import ROW_FIELDS, Row

CLAIMED, COMPLETED, CHANGED, MOVED = Shape.CLAIMED, Shape.COMPLETED, Shape.CHANGED, Shape.MOVED


class Written:
    """A transaction that only notes in which way rows were written."""

    def __init__(self) -> None:
        self.updates: list[tuple[Shape, list[str]]] = []

    def update(self, rows: list[Row], shape: Shape) -> None:
        self.updates.append((shape, [row.id for row in rows]))


def row(name: str) -> Row:
    fields: dict[str, Any] = dict.fromkeys(ROW_FIELDS)
    return Row(**{**fields, "id": name})


A, B, C = row("a"), row("b"), row("c")


def sent(changes: Changes) -> list[tuple[Shape, list[str]]]:
    written = Written()
    changes.send(cast(Transaction, written))
    assert not changes
    changes.send(cast(Transaction, written))
    return written.updates


def test_rows_that_change_alike_are_written_together() -> None:
    changes = Changes()
    changes.touch_all([A, B], CLAIMED)
    assert changes
    assert changes.has_messages
    assert sent(changes) == [(CLAIMED, ["a", "b"])]


def test_no_rows_are_nothing_to_write() -> None:
    changes = Changes()
    changes.touch_all([], CLAIMED)
    assert not changes
    assert sent(changes) == []


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (CLAIMED, [(CLAIMED, ["a", "b"])]),
        (COMPLETED, [(CLAIMED, ["a"]), (CHANGED, ["b"])]),
        (MOVED, [(CLAIMED, ["a"]), (MOVED, ["b"])]),
    ],
)
def test_one_that_also_changes_otherwise_is_written_once_and_whole(
    shape: Shape, expected: list[tuple[Shape, list[str]]]
) -> None:
    changes = Changes()
    changes.touch_all([A, B], CLAIMED)
    changes.touch(B, shape)
    assert sorted(sent(changes)) == sorted(expected)


def test_more_that_change_alike_join_the_others() -> None:
    changes = Changes()
    changes.touch_all([A, B], CLAIMED)
    changes.touch_all([C], CLAIMED)
    changes.touch_all([A], COMPLETED)
    assert sorted(sent(changes)) == sorted([(CLAIMED, ["b", "c"]), (CHANGED, ["a"])])


def test_what_a_savepoint_gathered_joins_what_was_before_it() -> None:
    outer, later = Changes(), Changes()
    outer.touch_all([A], CLAIMED)
    later.touch_all([A, B], COMPLETED)
    outer.merge(later)
    assert sorted(sent(outer)) == sorted([(CHANGED, ["a"]), (COMPLETED, ["b"])])
    empty, later = Changes(), Changes()
    later.touch_all([A, B], COMPLETED)
    empty.merge(later)
    assert sent(empty) == [(COMPLETED, ["a", "b"])]
