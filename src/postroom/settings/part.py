"""What all parts of the settings share: nothing changes, secrets do not print, and each tells of its fields.

A field is annotated with its type and, as a plain text, with what it means. `Meta` bounds it; `Check` and
`Prepare` do more. What a file holds besides stays in the file, and is not here.
"""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, dataclass_transform, get_args, get_origin, get_type_hints

import msgspec

from postroom.settings.secrets import MASK, names_secret

REQUIRED: Any = msgspec.NODEFAULT


class Check(msgspec.Struct, frozen=True):
    """In an annotation: gives the value back, perhaps in better order, or raises ValueError with the fix."""

    run: Callable[[Any], Any]


class Prepare(msgspec.Struct, frozen=True):
    """The same for what is written, before anything else looks at it."""

    run: Callable[[Any], Any]


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class SettingsPart(msgspec.Struct, frozen=True, kw_only=True):
    _given: frozenset[str] = frozenset()

    @property
    def given(self) -> frozenset[str]:
        """The fields that somebody has set."""
        return self._given

    def values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in fields_of(type(self))}

    def changed(self) -> dict[str, Any]:
        """The values that are not the defaults."""
        fields = fields_of(type(self))
        return {name: value for name, value in self.values().items() if value != fields[name].make_default()}

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_shown(name, value)}" for name, value in self.values().items())
        return f"{type(self).__name__}({shown})"


class SharedPart(SettingsPart):
    """A part other programs write too: where they leave a null, our default holds."""


class SettingField(msgspec.Struct, frozen=True):
    kind: Any
    meaning: str
    default: Any

    def make_default(self) -> Any:
        return self.default() if self.default is dict else self.default


@cache
def fields_of(part: type[SettingsPart]) -> dict[str, SettingField]:
    kinds = get_type_hints(part, include_extras=True)
    return {
        field.name: SettingField(kinds[field.name], _meaning(kinds[field.name]), _default(field))
        for field in msgspec.structs.fields(part)
        if not field.name.startswith("_")
    }


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default_factory if field.default is msgspec.NODEFAULT else field.default


def _meaning(kind: Any) -> str:
    said = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return next((each for each in said if isinstance(each, str)), "")


def _shown(name: str, value: Any) -> str:
    return repr(MASK) if isinstance(value, str) and names_secret(name) else repr(value)
