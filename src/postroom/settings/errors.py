"""What can be wrong with settings, told by field and fix, and never with the value: it may be a secret."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from postroom.errors import Conflict, Invalid, PostroomError

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails


class InvalidSettings(Invalid):
    """The settings in {path} are not valid. {problems}"""

    code = "SETTINGS_INVALID"


class SettingsBroken(PostroomError):
    """The settings in {path} cannot be read: {problem}. Nothing was changed. Correct the file, or put back a
    copy of it."""

    code = "SETTINGS_BROKEN"
    exit_code = 2


class SettingsBusy(Conflict):
    """The settings in {path} are locked by another process for more than {seconds} s. Try again."""

    code = "SETTINGS_BUSY"


class SettingsUnwritable(PostroomError):
    """The settings in {path} cannot be written: {reason}. The old file is as it was."""

    code = "SETTINGS_UNWRITABLE"
    exit_code = 6


class SettingsContended(Conflict):
    """The settings are changed by others all the time. Nothing was changed. Try again."""

    code = "SETTINGS_CONTENDED"


class SettingsChanged(Conflict):
    """The settings were changed by others since you looked at them. Nothing was changed. Look again."""

    code = "SETTINGS_CHANGED"


class TokenDiffers(PostroomError):
    """The owner's token of this host is not that of the office on this store. Nothing was changed. Join the
    office with its token: postroom join"""

    code = "TOKEN_DIFFERS"
    http_status = 409
    exit_code = 3


class OwnerTokenMissing(PostroomError):
    """There is an office on this store, and this host has no token of its owner. Join it: postroom join"""

    code = "OWNER_TOKEN_MISSING"
    http_status = 409
    exit_code = 3


class SealingUnavailable(PostroomError):
    """The package "cryptography" is missing, with which secrets of the settings are sealed in a store.
    Install it: pip install cryptography"""

    code = "SEALING_UNAVAILABLE"
    exit_code = 6


class SecretMissing(PostroomError):
    """The secret {handle} is not to be had: {reason}. {fix}"""

    code = "SECRET_MISSING"
    exit_code = 2


def invalid(path: object, error: "ValidationError") -> InvalidSettings:
    details = [(field_of(problem["loc"]), told(problem)) for problem in error.errors(include_input=False)]
    return InvalidSettings(path=str(path), problems=sentences(details), details=details)


def sentences(details: Sequence[tuple[str, str]]) -> str:
    return " ".join(f"{field}: {problem}." for field, problem in details)


def field_of(location: Sequence[int | str]) -> str:
    # Branches of a union and keys add steps that are no part of the field's name.
    steps = [step for step in location if not (isinstance(step, str) and step in _NO_FIELDS)]
    return ".".join(str(step) for step in steps) or "settings"


def told(problem: "ErrorDetails") -> str:
    context: dict[str, Any] = problem.get("ctx") or {}
    kind = problem["type"]
    if kind in ("value_error", "assertion_error"):
        return str(context.get("error", problem["msg"]))
    template = _TOLD.get(kind)
    return template.format(**context) if template else problem["msg"].lower()


_NO_FIELDS = frozenset({"[key]", "function-before", "function-after", "nullable"})

_TOLD = {
    "missing": "is missing; add it",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "string_type": 'must be a text in "quotes"',
    "string_too_short": "must not be empty",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a number that is not infinite",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "greater_than": "must be more than {gt:.15g}",
    "greater_than_equal": "must be {ge:.15g} or more",
    "less_than": "must be less than {lt:.15g}",
    "less_than_equal": "must be {le:.15g} or less",
    "dict_type": "must be an object in {{braces}}",
    "model_type": "must be an object in {{braces}}",
    "model_attributes_type": "must be an object in {{braces}}",
    "list_type": "must be a list in [brackets]",
    "too_long": "must have at most {max_length} entries",
}
