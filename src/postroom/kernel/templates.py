"""Placeholders: `{{path.to.value}}` in any text of a JSON document, filled from what is given."""

import re
from typing import Any

from postroom.errors import InvalidField
from postroom.kernel import jsontext

_HOLE = re.compile(r"\{\{\s*([A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*\}\}")
_MISSING = object()


def holes(document: Any) -> set[str]:
    """The paths a document asks for."""
    if isinstance(document, str):
        return set(_HOLE.findall(document))
    parts = (
        document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    )
    return set().union(*(holes(part) for part in parts)) if parts else set()


def filled(document: Any, values: dict[str, Any], *, strict: bool = True) -> Any:
    """A text that is one placeholder becomes its value; in longer texts values are written out.

    What is missing is an error, or (not `strict`) nothing.
    """
    if isinstance(document, dict):
        return {name: filled(part, values, strict=strict) for name, part in document.items()}
    if isinstance(document, list):
        return [filled(part, values, strict=strict) for part in document]
    if not isinstance(document, str):
        return document
    whole = _HOLE.fullmatch(document.strip())
    if whole:
        return _value(whole[1], values, strict)
    return _HOLE.sub(lambda hole: _written(_value(hole[1], values, strict)), document)


def _value(path: str, values: dict[str, Any], strict: bool) -> Any:
    found: Any = values
    for step in path.split("."):
        found = found.get(step, _MISSING) if isinstance(found, dict) else _MISSING
        if found is _MISSING:
            if strict:
                raise InvalidField("parameters", f"has no {path}, which the text asks for")
            return None
    return found


def _written(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else jsontext.text(value)
