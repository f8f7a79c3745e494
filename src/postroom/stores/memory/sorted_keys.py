"""Keys kept in order: the memory store's stand-in for a database index."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K", int, tuple[int, int], tuple[str, int])

COMPACT_FROM = 64


class SortedKeys(Generic[K]):
    """A sorted list of distinct keys. Consumers take from the front, so leaving the front costs nothing."""

    __slots__ = ("_keys", "_start")

    def __init__(self) -> None:
        self._keys: list[K] = []
        # Keys before this were taken away; they go in one sweep, when they are half of the list.
        self._start = 0

    def __len__(self) -> int:
        return len(self._keys) - self._start

    def add(self, key: K) -> None:
        keys = self._keys
        if not keys or key > keys[-1]:
            keys.append(key)
            return
        index = bisect_left(keys, key, self._start)
        if index == self._start and index > 0:
            self._start -= 1
            keys[self._start] = key
        else:
            keys.insert(index, key)

    def remove(self, key: K) -> None:
        keys = self._keys
        index = bisect_left(keys, key, self._start)
        if index == len(keys) or keys[index] != key:
            raise KeyError(key)
        if index > self._start:
            del keys[index]
            return
        self._start += 1
        if self._start >= COMPACT_FROM and self._start * 2 >= len(keys):
            del keys[: self._start]
            self._start = 0

    def first(self) -> K | None:
        return self._keys[self._start] if len(self) else None

    def head(self, limit: int) -> list[K]:
        return self._keys[self._start : self._start + max(limit, 0)]

    def __iter__(self) -> Iterator[K]:
        return self._from(self._start)

    def after(self, key: K) -> Iterator[K]:
        return self._from(bisect_right(self._keys, key, self._start))

    def _from(self, index: int) -> Iterator[K]:
        for at in range(index, len(self._keys)):
            yield self._keys[at]

    def backwards(self, before: K | None = None) -> Iterator[K]:
        """From the end, or from just before a key."""
        end = len(self._keys) if before is None else bisect_left(self._keys, before, self._start)
        for at in range(end - 1, self._start - 1, -1):
            yield self._keys[at]
