"""JSON in and out, strictly: what could not come back the same is refused, never silently changed."""

import math
from typing import Any

import msgspec

from postroom.errors import InvalidField

_encoder = msgspec.json.Encoder()
encode = _encoder.encode
decode = msgspec.json.Decoder().decode


def encode_strict(value: Any, field: str) -> bytes:
    try:
        data = encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidField(field, f"cannot be written as JSON ({error})") from None
    # The encoder writes NaN and infinities as null; look closer only when a null is there.
    if b"null" in data and not _finite(value):
        raise InvalidField(field, "has a number that JSON cannot hold (NaN or infinity)")
    return data


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(_finite(v) for v in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return all(_finite(v) for v in value)
    return True


def decode_any(data: bytes | str | None, default: Any = None) -> Any:
    return default if data is None else decode(data)


def text(value: Any) -> str:
    return encode(value).decode()
