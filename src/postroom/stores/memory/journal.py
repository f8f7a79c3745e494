"""How to take back what a transaction has done: one undo step per write, newest first."""

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Journal:
    """Every write to the tables goes through here or notes its own undo step."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []

    def note(self, undo: Callable[[], object]) -> None:
        self._steps.append(undo)

    def set(self, table: dict[K, V], key: K, value: V) -> None:
        if key in table:
            before = table[key]
            self._steps.append(lambda: table.__setitem__(key, before))
        else:
            self._steps.append(lambda: table.__delitem__(key))
        table[key] = value

    def delete(self, table: dict[K, V], key: K) -> V:
        before = table.pop(key)
        self._steps.append(lambda: table.__setitem__(key, before))
        return before

    def mark(self) -> int:
        return len(self._steps)

    def undo_to(self, mark: int) -> None:
        while len(self._steps) > mark:
            self._steps.pop()()

    def forget(self) -> None:
        """What was done is committed."""
        self._steps.clear()
