"""Lists as PostgreSQL's array literals, made whole columns at a time.

The driver makes an array value by value in Python, which would cost more than the server needs to insert the
rows. What a whole column cannot be written with safely goes through the driver.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from psycopg.adapt import Dumper

from postroom.stores.postgres.characters import needs_marks

_encode = msgspec.json.Encoder().encode


class ArrayLiteral:
    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text


class ArrayLiteralDumper(Dumper):
    """Of no type: statements say what their arrays hold."""

    def dump(self, obj: ArrayLiteral) -> bytes:
        return obj.text


def pack_array(values: Sequence[Any]) -> ArrayLiteral | list[Any]:
    """A literal of strings, numbers, truths or bytes; the list itself where only the driver can tell."""
    first = next((value for value in values if value is not None), None)
    if isinstance(first, bytes):
        words = ["NULL" if value is None else f'"\\\\x{value.hex()}"' for value in values]
        return ArrayLiteral(f"{{{','.join(words)}}}".encode())
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
