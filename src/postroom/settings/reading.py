"""Reads settings from a document: every mistake is found, and told by its field with its fix, never with the
value, which may be a secret."""

import math
import re
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from msgspec import Meta

from postroom.settings.errors import InvalidSettings, sentences
from postroom.settings.part import REQUIRED, Check, Prepare, SettingsPart, SharedPart, fields_of
from postroom.settings.secret import Secret

P = TypeVar("P", bound=SettingsPart)

At = tuple[str, ...]

_OBJECT = "must be an object in {braces}"
_WHOLE = re.compile(r"\s*[+-]?[0-9]+(_[0-9]+)*(\.0+)?\s*")
_YES = frozenset({"1", "true", "t", "yes", "y", "on"})
_NO = frozenset({"0", "false", "f", "no", "n", "off"})


def read_part(kind: type[P], document: Mapping[str, Any], path: object) -> P:
    """Raises `InvalidSettings` with all that is wrong; `path` is where the document is from."""
    reader = _Reader()
    found = reader.read_part(kind, document, ())
    if reader.problems:
        details = reader.problems
        raise InvalidSettings(path=str(path), problems=sentences(details), details=details)
    return found


class _Reader:
    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []

    def _refuse(self, at: At, problem: str) -> None:
        self.problems.append((".".join(at) or "settings", problem))

    def read_part(self, kind: type[SettingsPart], document: Any, at: At) -> Any:
        if not isinstance(document, Mapping):
            return self._refuse(at, _OBJECT)
        fields, found = fields_of(kind), {}
        if issubclass(kind, SharedPart):
            document = {name: value for name, value in document.items() if value is not None}
        for name, field in fields.items():
            if name in document:
                found[name] = self._read(field.kind, document[name], (*at, name))
            elif field.default is REQUIRED:
                self._refuse((*at, name), "is missing; add it")
        if self.problems:
            return None
        rest: dict[str, Any] = {"_given": frozenset(found)}
        if "_others" in kind.__struct_fields__:
            rest["_others"] = {name: value for name, value in document.items() if name not in fields}
        return kind(**found, **rest)

    def _read(self, kind: Any, value: Any, at: At) -> Any:
        """A value by its annotation; None after a mistake, since nobody will see it then."""
        marks: list[Any] = []
        if get_origin(kind) is Annotated:
            kind, *marks = get_args(kind)
        before = len(self.problems)
        try:
            for mark in marks:
                if isinstance(mark, Prepare):
                    value = mark.run(value)
            value = self._read_bare(kind, value, at)
            if len(self.problems) == before:
                for mark in marks:
                    if isinstance(mark, Meta):
                        _check_bounds(mark, value)
                    elif isinstance(mark, Check):
                        value = mark.run(value)
        except ValueError as error:
            return self._refuse(at, str(error))
        return value

    def _read_bare(self, kind: Any, value: Any, at: At) -> Any:
        origin, inner = get_origin(kind), get_args(kind)
        if origin in (Union, UnionType):
            [bare] = [each for each in inner if each is not type(None)]
            return None if value is None else self._read(bare, value, at)
        if origin is Literal:
            return _one_of(inner, value)
        if origin is dict:
            if not isinstance(value, Mapping):
                raise ValueError(_OBJECT)
            return {key: self._read(inner[1], each, (*at, key)) for key, each in value.items()}
        if origin is tuple:
            if not isinstance(value, list | tuple):
                raise ValueError("must be a list in [brackets]")
            return tuple(self._read(inner[0], each, (*at, str(n))) for n, each in enumerate(value))
        if issubclass(kind, SettingsPart):
            return self.read_part(kind, value, at)
        return _PLAIN[kind](value)


def _one_of(words: tuple[Any, ...], value: Any) -> Any:
    if value in words:
        return value
    *first, last = map(repr, words)
    raise ValueError(f"must be {', '.join(first)} or {last}")


def _check_bounds(bounds: Meta, value: Any) -> None:
    if bounds.min_length is not None and len(value) < bounds.min_length:
        raise ValueError("must not be empty")
    if bounds.gt is not None and not value > bounds.gt:
        raise ValueError(f"must be more than {bounds.gt:.15g}")
    if bounds.ge is not None and not value >= bounds.ge:
        raise ValueError(f"must be {bounds.ge:.15g} or more")
    if bounds.le is not None and not value <= bounds.le:
        raise ValueError(f"must be {bounds.le:.15g} or less")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError('must be a text in "quotes"')
    return value


def _yes_or_no(value: Any) -> bool:
    """Also in the words that people use for it."""
    word = str(value).lower() if isinstance(value, bool | int | str) else ""
    if word not in _YES | _NO:
        raise ValueError("must be true or false")
    return word in _YES


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError(f"must be a number, not {str(value).lower()}")
    try:
        readable = value.isascii() if isinstance(value, str) else isinstance(value, int | float)
        found = float(value) if readable else None
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise ValueError("must be a number")
    if not math.isfinite(found):
        raise ValueError("must be a number that is not infinite")
    return found


def _whole_number(value: Any) -> int:
    if isinstance(value, bool):
        raise ValueError(f"must be a number, not {str(value).lower()}")
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < 2**63):
        return int(value)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value.partition(".")[0])
    raise ValueError("must be a whole number")


_PLAIN: dict[Any, Callable[[Any], Any]] = {
    str: _text,
    bool: _yes_or_no,
    int: _whole_number,
    float: _number,
    Secret: lambda value: Secret(_text(value)),
    Any: lambda value: value,
}
