"""Requests and answers as bytes, for a process that asks the one that owns the store.

Only structs and enums of the kernel, the office, the services and the list of settings, and our own errors,
can be named; nothing else is ever made from bytes.
"""

import importlib
from enum import Enum
from typing import Any

import msgspec

from postroom.errors import Invalid, PostroomError

VALUES = (
    "postroom.kernel.",
    "postroom.office.",
    "postroom.runtime.queries",
    "postroom.services.",
    "postroom.settings.catalog",
)
ERRORS = ("postroom.",)
_KIND, _VALUE = "$", "v"


class WireNotAllowed(Invalid):
    """ "{name}" is nothing that may come over the wire."""


def encode(value: Any) -> bytes:
    return msgspec.msgpack.encode(_plain(value))


def decode(data: bytes) -> Any:
    try:
        return _made(msgspec.msgpack.decode(data))
    except (msgspec.MsgspecError, TypeError, ValueError, AttributeError, ImportError, KeyError) as error:
        raise WireNotAllowed(name=str(error)[:200]) from None


def encode_error(error: PostroomError) -> bytes:
    data = {key: _builtin(value) for key, value in error.data.items()}
    item = None if error.item is None else [error.item, error.item_key]
    return msgspec.msgpack.encode(
        {"error": _name(type(error)), "data": data, "text": str(error), "item": item}
    )


def decode_error(data: bytes) -> PostroomError:
    found = msgspec.msgpack.decode(data)
    kind = _class(found["error"], ERRORS)
    if not issubclass(kind, PostroomError):
        raise WireNotAllowed(name=found["error"])
    error = kind(**found["data"])
    if found.get("item"):
        error.of_item(*found["item"])
    return error


def _builtin(value: Any) -> Any:
    try:
        return msgspec.to_builtins(value)
    except (TypeError, RecursionError):
        return str(value)


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return {_KIND: _name(type(value)), _VALUE: value.value}
    if isinstance(value, msgspec.Struct):
        fields = {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        return {_KIND: _name(type(value)), _VALUE: fields}
    if isinstance(value, dict):
        return {_KIND: "", _VALUE: [[_plain(key), _plain(below)] for key, below in value.items()]}
    if isinstance(value, tuple):
        return {_KIND: "tuple", _VALUE: [_plain(below) for below in value]}
    if isinstance(value, frozenset):
        return {_KIND: "frozenset", _VALUE: [_plain(below) for below in value]}
    if isinstance(value, list):
        return [_plain(below) for below in value]
    return value


def _made(value: Any) -> Any:
    if isinstance(value, list):
        return [_made(below) for below in value]
    if not isinstance(value, dict):
        return value
    name, content = value[_KIND], value[_VALUE]
    if name == "":
        return {_made(key): _made(below) for key, below in content}
    if name == "tuple":
        return tuple(_made(below) for below in content)
    if name == "frozenset":
        return frozenset(_made(below) for below in content)
    kind = _class(name, VALUES)
    if issubclass(kind, Enum):
        return kind(content)
    if not issubclass(kind, msgspec.Struct):
        raise WireNotAllowed(name=name)
    return kind(**{field: _made(below) for field, below in content.items()})


def _class(name: str, within: tuple[str, ...]) -> type:
    module, colon, path = name.partition(":")
    if not colon or not module.startswith(within) or not path.isidentifier():
        raise WireNotAllowed(name=name)
    found = getattr(importlib.import_module(module), path)
    if not isinstance(found, type) or found.__module__ != module:
        raise WireNotAllowed(name=name)
    return found
