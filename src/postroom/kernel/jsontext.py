"""JSON in and out, strictly: what could not come back the same is refused, never silently changed."""

import math
import re
from typing import Any

import msgspec

from postroom.errors import InvalidField

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode
_sorted = msgspec.json.Encoder(order="sorted").encode

DEEPEST = 200
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')
_BRACKETS = re.compile(rb"[\[\]{}]")


def encode_strict(value: Any, field: str) -> bytes:
    try:
        data = encode(value)
        if _flat(value):
            return data
        same = decode(data) == value
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.DecodeError) as error:
        raise InvalidField(field, f"cannot be written as JSON ({error})") from None
    if not same:
        _refuse_foreign(value, field)
    if _depth(data) > DEEPEST:
        raise InvalidField(field, f"is nested more than {DEEPEST} deep")
    return data


_TEXTS = frozenset({str})
_SCALARS = frozenset({str, int, bool, type(None)})


def _flat(value: Any) -> bool:
    """Most bodies are a few named texts, numbers and lists of such, which need no closer look."""
    if type(value) is not dict:
        return type(value) in _SCALARS
    if not _TEXTS.issuperset(map(type, value)):
        return False
    for item in value.values():
        if type(item) not in _SCALARS and not (type(item) is list and _SCALARS.issuperset(map(type, item))):
            return False
    return True


def _refuse_foreign(value: Any, field: str) -> None:
    """Find what JSON would change. A tuple may become a list; everything else must stay what it was."""
    if isinstance(value, dict):
        for name, item in value.items():
            if not isinstance(name, str):
                raise InvalidField(field, f"has the name {name!r}, but names in JSON are texts")
            _refuse_foreign(item, field)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_foreign(item, field)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidField(field, "has a number that JSON cannot hold (NaN or infinity)")
    elif value is not None and not isinstance(value, str | int):
        raise InvalidField(field, f"has a {type(value).__name__}, which JSON would change; write it as text")


def _depth(data: bytes) -> int:
    """How deep it is nested; counted only when there are enough brackets to be too deep."""
    brackets = data.count(b"[") + data.count(b"{")
    if brackets <= DEEPEST:
        return 0
    depth = deepest = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub(b"", data)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def same(one: bytes | None, other: bytes | None) -> bool:
    """Whether two JSON texts say the same, whatever the order of their names."""
    if one == other:
        return True
    return one is not None and other is not None and _sorted(decode(one)) == _sorted(decode(other))


def decode_any(data: bytes | str | None, default: Any = None) -> Any:
    return default if data is None else decode(data)


def text(value: Any) -> str:
    return encode(value).decode()
