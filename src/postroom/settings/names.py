"""Ids of agents and teams. An id becomes the name of a folder and a queue, so it must never hold a path."""

import re
from collections.abc import Container

from postroom.errors import InvalidField

ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
RULE = "small letters, digits, - and _, beginning with a letter or digit, 63 at most"

# `@default` clears a chat's choice, `user` signs the posts of people, `system` those of the office.
RESERVED = frozenset({"default", "system", "user"})


def is_id(value: object) -> bool:
    return isinstance(value, str) and ID.fullmatch(value) is not None


def check_id(field: str, value: object) -> str:
    if not isinstance(value, str) or not ID.fullmatch(value):
        raise InvalidField(field, not_an_id(value))
    return value


def check_new_id(field: str, value: object, taken: Container[str] = ()) -> str:
    """An id for something new. Files of other programs may hold reserved ids; new ones are not made."""
    name = check_id(field, value)
    if name in RESERVED:
        raise InvalidField(field, f'"{name}" is a word with a meaning of its own here; choose another id')
    if name in taken:
        raise InvalidField(field, f'"{name}" is in use already; agents and teams need different ids')
    return name


def not_an_id(value: object) -> str:
    shown = str(value)
    shown = f"{shown[:40]}…" if len(shown) > 40 else shown
    fix = suggestion(shown)
    return f'"{shown}" is no id ({RULE})' + (f'; "{fix}" would be one' if fix else "")


def suggestion(value: str) -> str:
    return re.sub(r"[^a-z0-9_-]+", "-", value.lower()).strip("-_")[:63]
