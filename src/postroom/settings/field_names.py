"""Which settings there are, by name. A file may hold others, which are kept; who types one is asked first."""

import difflib
import types
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin

from postroom.settings.model import Settings
from postroom.settings.part import SettingsPart, fields_of

ANY = "*"


def unknown_names(name: str, value: Any = None) -> list[str]:
    """Names in this setting, or in the value it is given, that Postroom does not know."""
    kind: Any = Settings
    for step in name.split("."):
        kind = _below(kind, step)
        if kind is None:
            return [name]
    return list(_unknown_in(kind, name, value))


def nearest_name(name: str) -> str | None:
    """The known name that is nearest to an unknown one."""
    steps = name.split(".")
    known = [_with_own_ids(each, steps) for each in known_names()]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    if near:
        return near[0]
    last: dict[str, str] = {}
    for each in known:
        last.setdefault(each.rpartition(".")[2], each)
    near = difflib.get_close_matches(steps[-1], [word for word in last if word != ANY], n=1, cutoff=0.75)
    return last[near[0]].replace(ANY, "ID") if near else None


def _unknown_in(kind: Any, name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            below = _below(kind, key)
            if below is None:
                yield f"{name}.{key}"
            else:
                yield from _unknown_in(below, f"{name}.{key}", each)
    elif isinstance(value, list):
        [item] = get_args(bare_type(kind))[:1] or [Any]
        for number, each in enumerate(value):
            yield from _unknown_in(item, f"{name}.{number}", each)


def _below(kind: Any, step: str) -> Any:
    """What stands under a name; None when nothing does."""
    kind = bare_type(kind)
    if kind is Any:
        return Any
    if get_origin(kind) is dict:
        return get_args(kind)[1]
    if not is_part(kind):
        return None
    field = fields_of(kind).get(step)
    return None if field is None else field.kind


def bare_type(kind: Any) -> Any:
    """Without what is said about it, and without None beside it."""
    while True:
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        elif get_origin(kind) in (Union, types.UnionType):
            [kind, *_] = [each for each in get_args(kind) if each is not type(None)]
        else:
            return kind


def is_part(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, SettingsPart)


def known_names(kind: type[SettingsPart] = Settings, above: str = "") -> Iterator[str]:
    """All there are; `*` stands for an id that people choose."""
    for key, field in fields_of(kind).items():
        name, below = f"{above}{key}", bare_type(field.kind)
        yield name
        if get_origin(below) in (dict, tuple):
            name, below = f"{name}.{ANY}", bare_type(get_args(below)[get_origin(below) is dict])
        if is_part(below):
            yield from known_names(below, f"{name}.")


def _with_own_ids(name: str, steps: list[str]) -> str:
    """`agents.*.model` with the id that was written."""
    own = [
        given if each == ANY else each
        for each, given in zip(name.split("."), [*steps, *[ANY] * 9], strict=False)
    ]
    return ".".join(own)
