"""Lists as PostgreSQL's array literals, made whole columns at a time.

The driver makes an array value by value in Python, which would cost more than the server needs to insert the
rows. What a whole column cannot be written with safely goes through the driver.
"""

import struct
from collections.abc import Sequence
from typing import Any

import msgspec
from psycopg.adapt import Dumper
from psycopg.pq import Format

from postroom.stores.postgres.characters import needs_marks

_encode = msgspec.json.Encoder().encode
BYTEA, BYTEA_ARRAY = 17, 1001
# One dimension, whether there are NULLs, the type of elements, how many, and the number of the first.
_head = struct.Struct(">iiIii").pack
_length = struct.Struct(">i").pack
_NULL = _length(-1)


class ArrayLiteral:
    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text


class ArrayLiteralDumper(Dumper):
    """Of no type: statements say what their arrays hold."""

    def dump(self, obj: ArrayLiteral) -> bytes:
        return obj.text


class BytesArray:
    """Bytes go as they are; as text each would be two characters."""

    __slots__ = ("data",)

    def __init__(self, values: Sequence[bytes | None]) -> None:
        parts = [_head(1, None in values, BYTEA, len(values), 1)]
        for value in values:
            parts += (_NULL,) if value is None else (_length(len(value)), value)
        self.data = b"".join(parts)


class BytesArrayDumper(Dumper):
    format = Format.BINARY
    oid = BYTEA_ARRAY

    def dump(self, obj: BytesArray) -> bytes:
        return obj.data


def pack_array(values: Sequence[Any]) -> ArrayLiteral | BytesArray | list[Any]:
    """Strings, numbers, truths or bytes; the list itself where only the driver can tell."""
    first = next((value for value in values if value is not None), None)
    if isinstance(first, bytes):
        return BytesArray(values)
    if isinstance(first, float):
        return list(values)
    try:
        text = _encode(values)
    except (UnicodeEncodeError, msgspec.MsgspecError, TypeError, ValueError):
        return list(values)
    # A literal escapes quotes and backslashes as JSON does, and knows none of its other escapes.
    if b"\\" in text and b"\\" in text.replace(b"\\\\", b"").replace(b'\\"', b""):
        return list(values)
    return list(values) if needs_marks(text) else ArrayLiteral(b"{" + text[1:-1] + b"}")
