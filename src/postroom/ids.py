"""Ids and claim nonces. Message ids are UUIDs of version 7, so they sort by time of making."""

import os
import random
from typing import Protocol


class Ids(Protocol):
    def make(self, count: int, now: int) -> list[str]: ...

    def nonce(self) -> str: ...


_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def _uuid7(random_hex: str, count: int, now: int) -> list[str]:
    stamp = f"{now // 1000:012x}"
    head = f"{stamp[:8]}-{stamp[8:]}-7"
    return [
        f"{head}{random_hex[i : i + 3]}-{_VARIANT[random_hex[i + 3]]}"
        f"{random_hex[i + 4 : i + 7]}-{random_hex[i + 7 : i + 19]}"
        for i in range(0, count * 20, 20)
    ]


class RandomIds:
    """Randomness is fetched in stock, since asking the system for each id would cost more than the id."""

    STOCK = 4096

    def __init__(self) -> None:
        self._stock = ""
        self._used = 0

    def make(self, count: int, now: int) -> list[str]:
        end = self._used + 20 * count
        if end > len(self._stock):
            self._stock = os.urandom(max(self.STOCK, 10 * count)).hex()
            self._used, end = 0, 20 * count
        random_hex = self._stock[self._used : end]
        self._used = end
        return _uuid7(random_hex, count, now)

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
