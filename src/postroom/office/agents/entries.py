"""Entries of agents and teams in the settings as they are written: found in any case, changed in part."""

from collections.abc import Iterable, Mapping
from typing import Any

from postroom.errors import InvalidField

Entry = dict[str, Any]
Document = dict[str, Any]


def entries(document: Document, kind: str) -> Entry:
    """The part of the settings that holds entries of a kind, made if it is missing."""
    part = document.get(kind)
    if not isinstance(part, dict):
        part = document[kind] = {}
    return part


def folded(field: str, name: object) -> str:
    """An id as it is looked up: people write it in any case."""
    if not isinstance(name, str):
        raise InvalidField(field, "must be a text")
    return name.lower()


def key_of(part: Mapping[str, Any], name: str) -> str | None:
    """The key an id stands under: files of other programs have capitals."""
    return next((key for key in part if key.lower() == name), None)


def merged(entry: Mapping[str, Any], changes: Mapping[str, Any]) -> Entry:
    """A null removes a field, an object changes only the fields it names, all else replaces."""
    result = dict(entry)
    for field, value in changes.items():
        if value is None:
            result.pop(field, None)
        elif isinstance(value, Mapping):
            old = result.get(field)
            result[field] = merged(old if isinstance(old, Mapping) else {}, value)
        else:
            result[field] = list(value) if isinstance(value, tuple) else value
    return result


def check_fields(
    kind: str, changes: Mapping[str, Any], known: Iterable[str], entry: Mapping[str, Any]
) -> None:
    """A field we do not know would be kept and do nothing: most likely it is misspelt."""
    allowed = sorted({*known, *entry})
    for field in changes:
        if field not in allowed:
            raise InvalidField(f"{kind}.{field}", f"is no field; known are {', '.join(sorted(known))}")
