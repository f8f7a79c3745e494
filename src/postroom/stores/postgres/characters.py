"""Strings, whatever they hold. PostgreSQL's text cannot hold NUL: it is written as two other characters, and
so is the first of these."""

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


class TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        text = str(data, "utf-8")
        return text.replace(_MARK + "0", _NUL).replace(_MARK + "1", _MARK) if _MARK in text else text
