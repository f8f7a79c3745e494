"""Reads the words of a command line without pydantic, which typer would import for every command.

Only what is plainly right is read here. Anything else goes to typer's own reader, so that errors read as
ever; so does everything, should a later typer be built otherwise.
"""

import re
from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn, get_args, get_origin

from typer.core import TyperCommand, TyperGroup

_NUMBERS = {int: re.compile(r"-?\d{1,18}", re.ASCII), float: re.compile(r"-?\d{1,15}(\.\d{1,15})?", re.ASCII)}


class PlainCommand(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _read_plainly(super().get_params(ctx))


class PlainGroup(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _read_plainly(super().get_params(ctx))


def _read_plainly(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        descriptor = getattr(parameter, "type_descriptor", None)
        if descriptor is None or getattr(parameter, "_runtime_param", descriptor) is not None:
            continue
        annotation = descriptor.annotation
        kind = get_args(annotation)[0] if get_origin(annotation) is list else annotation
        parameter._runtime_param = PlainWords(_reader(kind, descriptor.parameter_info))
    return parameters


def _reader(kind: Any, info: Any) -> Callable[[Any], Any]:
    if info.parser is not None:
        return info.parser
    if kind is str:
        return _text
    if kind in _NUMBERS and info.min is None and info.max is None:
        return lambda value: _number(kind, value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    return _other


def _other(value: Any) -> NoReturn:
    raise TypeError


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(kind: type, value: Any) -> Any:
    if isinstance(value, str) and not _NUMBERS[kind].fullmatch(value):
        raise ValueError
    return kind(value)


class PlainWords:
    """Stands where typer keeps its reader of one parameter."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self._read = read

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        many = param.multiple or param.nargs == -1
        if value is None:
            return () if many else None
        try:
            return [self._read(each) for each in value] if many else self._read(value)
        except Exception:
            param._runtime_param = None  # typer makes its own, and says what is wrong
            return param.get_runtime_param().coerce(value, param=param, ctx=ctx)
