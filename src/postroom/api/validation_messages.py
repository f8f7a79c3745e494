"""What is wrong with the body of a request, in our words: by field and fix, and never with the value."""

from collections.abc import Sequence
from typing import Any

from pydantic_core import ErrorDetails


def field_of(location: Sequence[int | str]) -> str:
    # Branches of a union and keys add steps that are no part of the field's name.
    steps = [step for step in location if not (isinstance(step, str) and step in _NO_FIELDS)]
    return ".".join(str(step) for step in steps) or "body"


def told(problem: ErrorDetails) -> str:
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
