"""Every setting there is: what holds now, what holds by itself, where the value comes from, what it means.

Secrets show as they do everywhere: masked, or as their handle.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec

from postroom.settings.defaults import VARIABLES
from postroom.settings.field_names import bare_type, is_part
from postroom.settings.model import Settings
from postroom.settings.part import REQUIRED, SettingField, SettingsPart, fields_of
from postroom.settings.secret import Secret
from postroom.settings.secrets import MASK

Source = Literal["file", "store", "environment", "default"]


class KnownSetting(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    value: Any
    default: Any
    source: Source
    meaning: str
    variable: str | None = None
    """The environment variable that goes before the file."""


def list_settings(
    document: Mapping[str, Any],
    environment: Mapping[str, str] = os.environ,
    source_of: Callable[[str], Source] = lambda name: "file",
) -> list[KnownSetting]:
    """`document` is what is set as it is shown, without secrets, and `source_of` tells where that is. Of what
    has ids of its own (agents, teams, servers), the settings of those that are there."""
    found = _settings(Settings, document, "", environment)
    return [
        msgspec.structs.replace(each, source=source_of(each.name)) if each.source == "file" else each
        for each in found
    ]


def _settings(
    part: type[SettingsPart], document: Any, above: str, environment: Mapping[str, str]
) -> Iterator[KnownSetting]:
    given = document if isinstance(document, Mapping) else {}
    for key, field in fields_of(part).items():
        name, kind, found = f"{above}{key}", bare_type(field.kind), given.get(key)
        below: Any = bare_type(get_args(kind)[1]) if get_origin(kind) is dict else None
        if is_part(below):
            ids = found if isinstance(found, Mapping) else {}
            for each, one in ids.items():
                yield from _settings(below, one, f"{name}.{each}.", environment)
        elif is_part(kind):
            yield from _settings(kind, found, f"{name}.", environment)
        else:
            yield _setting(name, field, found, environment)


def _setting(name: str, field: SettingField, found: Any, environment: Mapping[str, str]) -> KnownSetting:
    default = field.make_default()
    default = None if default is REQUIRED else list(default) if isinstance(default, tuple) else default
    variable = VARIABLES.get(name)
    said = environment.get(variable) if variable else None
    source: Source = "default" if found is None else "file"
    value = default if found is None else found
    if said:
        source, value = "environment", _read(field, said)
    return KnownSetting(
        name=name,
        value=value,
        default=default,
        source=source,
        meaning=field.meaning,
        variable=variable,
    )


def _read(field: SettingField, said: str) -> Any:
    """What a variable says, in the kind of its setting."""
    kind = bare_type(field.kind)
    if kind is Secret:
        return MASK
    return said == "1" if kind is bool else int(said) if kind is int and said.isdigit() else said
