"""Strings, whatever they hold. PostgreSQL's text cannot hold NUL: it is written as two other characters, and
so is the first of these."""

from itertools import chain
from operator import itemgetter
from typing import Any

from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader

_NUL, _MARK = "\x00", "\U0010fffe"
_MARK_BYTES = _MARK.encode()


def needs_marks(text: bytes) -> bool:
    """Whether this UTF-8 holds what cannot stand as it is, NUL apart."""
    return _MARK_BYTES in text


class TextDumper(Dumper):
    """Of no type, so that the server takes what it needs."""

    def dump(self, obj: str) -> bytes:
        if _NUL in obj or _MARK in obj:
            obj = obj.replace(_MARK, _MARK + "1").replace(_NUL, _MARK + "0")
        return obj.encode()


def _restore(text: str) -> str:
    return text.replace(_MARK + "0", _NUL).replace(_MARK + "1", _MARK) if _MARK in text else text


class TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        return _restore(str(data, "utf-8"))


class TextColumns:
    """Which columns of an answer are text. All is looked at at once, since hardly any of it holds marks."""

    def __init__(self, places: list[int]) -> None:
        self._places = frozenset(places)
        # Two at least, or it would not give a tuple.
        self._pick = itemgetter(*places, *places[:1]) if places else None

    def restore(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        if self._pick is None or _MARK not in "".join(
            filter(None, chain.from_iterable(map(self._pick, rows)))
        ):
            return rows
        return [
            tuple(_restore(value) if value and i in self._places else value for i, value in enumerate(row))
            for row in rows
        ]
