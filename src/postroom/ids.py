"""Ids and claim nonces. Message ids are UUIDs of version 7, so they sort by time of making."""

import os
import random
from typing import Protocol

# Those that give a message its id themselves, and tell it to whoever sent it.
_SENDING = ("cli", "api", "web")


def possible_conversations(wanted: str) -> tuple[str, ...]:
    """The conversations that somebody may mean: its own id, or the one that `send` printed."""
    return (wanted, *(f"{channel}:{wanted}" for channel in _SENDING if ":" not in wanted))


class Ids(Protocol):
    def make(self, count: int, now: int) -> list[str]: ...

    def nonce(self) -> str: ...


_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def _head(now: int) -> str:
    """The part of a UUID of version 7 that is the time."""
    stamp = f"{now // 1000:012x}"
    return f"{stamp[:8]}-{stamp[8:]}-7"


def _tails(random_hex: str, count: int) -> list[str]:
    """The parts that are chance."""
    return [
        f"{random_hex[i : i + 3]}-{_VARIANT[random_hex[i + 3]]}"
        f"{random_hex[i + 4 : i + 7]}-{random_hex[i + 7 : i + 19]}"
        for i in range(0, count * 20, 20)
    ]


class RandomIds:
    """Chance is fetched and cut in stock, since doing so for each id would cost more than the id."""

    STOCK = 256

    def __init__(self) -> None:
        self._stock: list[str] = []
        self._nonces: list[str] = []

    def make(self, count: int, now: int) -> list[str]:
        head, stock = _head(now), self._stock
        if len(stock) < count:
            more = max(self.STOCK, count)
            stock += _tails(os.urandom(10 * more).hex(), more)
        if count == 1:
            return [head + stock.pop()]
        kept = len(stock) - count
        tails = stock[kept:]
        del stock[kept:]
        return [head + tail for tail in tails]

    def nonce(self) -> str:
        if not self._nonces:
            chance = os.urandom(8 * self.STOCK).hex()
            self._nonces = [chance[i : i + 16] for i in range(0, len(chance), 16)]
        return self._nonces.pop()


class SeededIds:
    """Ids for tests: the same seed gives the same ids."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def make(self, count: int, now: int) -> list[str]:
        head = _head(now)
        return [head + tail for tail in _tails(self._random.randbytes(10 * count).hex(), count)]

    def nonce(self) -> str:
        return self._random.randbytes(8).hex()
