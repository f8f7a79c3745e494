"""What all parts of the settings share: unknown fields are kept, secrets do not print, nothing changes."""

from collections.abc import Iterable
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator, model_validator

from postroom.settings.secrets import MASK, names_secret


class SettingsPart(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _yes_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and info.field_name is not None:
            kinds = _kinds(cls.model_fields[info.field_name].annotation)
            if kinds & {int, float} and not kinds & {bool, Any}:
                raise ValueError(f"must be a number, not {str(value).lower()}")
        return value

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for key, value in super().__repr_args__():
            hidden = key is not None and isinstance(value, str) and names_secret(key)
            yield key, MASK if hidden else value


def _kinds(annotation: Any) -> set[Any]:
    """The plain types that a field may have."""
    inner = get_args(annotation)
    if not inner:
        return {annotation}
    return set().union(*(_kinds(each) for each in inner))


class SharedPart(SettingsPart):
    """A part other programs write too: where they leave a null, our default holds."""

    @model_validator(mode="before")
    @classmethod
    def _nulls_are_absent(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {k: v for k, v in value.items() if not (v is None and k in cls.model_fields)}
