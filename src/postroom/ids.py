"""Ids and claim nonces. Message ids are UUIDs of version 7, so they sort by time of making."""

import os
import random
from typing import Protocol


class Ids(Protocol):
    def make(self, count: int, now: int) -> list[str]: ...

    def nonce(self) -> str: ...


def _uuid7(random_hex: str, count: int, now: int) -> list[str]:
    stamp = f"{now // 1000:012x}"
    head = f"{stamp[:8]}-{stamp[8:]}-7"
    return [
        f"{head}{random_hex[i : i + 3]}-{'89ab'[int(random_hex[i + 3], 16) & 3]}"
        f"{random_hex[i + 4 : i + 7]}-{random_hex[i + 7 : i + 19]}"
        for i in range(0, count * 20, 20)
    ]


class RandomIds:
    def make(self, count: int, now: int) -> list[str]:
        return _uuid7(os.urandom(10 * count).hex(), count, now)

    def nonce(self) -> str:
        return os.urandom(8).hex()


class SeededIds:
    """Ids for tests: the same seed gives the same ids."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def make(self, count: int, now: int) -> list[str]:
        return _uuid7(self._random.randbytes(10 * count).hex(), count, now)

    def nonce(self) -> str:
        return self._random.randbytes(8).hex()
