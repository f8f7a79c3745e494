"""The simple form of a condition: a field, an operator, a value."""

import re
from typing import Any

import msgspec

from postroom.errors import InvalidField
from postroom.kernel import expressions

OPERATORS = (
    "eq",
    "ne",
    "in",
    "not_in",
    "gt",
    "gte",
    "lt",
    "lte",
    "contains",
    "starts_with",
    "matches",
    "exists",
)
# What holds of a field that is not there.
OF_NOTHING = frozenset({"ne", "not_in"})
_FIELD = re.compile(r"[A-Za-z_][\w-]*(\.[\w-]+)*")
_NOTHING = object()


class Condition(msgspec.Struct, frozen=True):
    field: str
    op: str
    value: Any = None


def check(condition: Condition, place: str) -> None:
    if not _FIELD.fullmatch(condition.field):
        raise InvalidField(f"{place}.field", f"{condition.field!r} is not a path like labels.customer_tier")
    if condition.op not in OPERATORS:
        raise InvalidField(f"{place}.op", f"is {condition.op!r}, must be one of {', '.join(OPERATORS)}")
    if condition.op in ("in", "not_in") and not isinstance(condition.value, list):
        raise InvalidField(f"{place}.value", "must be a list")
    if condition.op in ("starts_with", "matches") and not isinstance(condition.value, str):
        raise InvalidField(f"{place}.value", "must be a text")
    if condition.op == "matches":
        expressions.check_pattern(str(condition.value), f"{place}.value")


def holds(condition: Condition, facts: dict[str, Any]) -> bool:
    found = _find(condition.field, facts)
    op, value = condition.op, condition.value
    if op == "exists":
        return (found is not _NOTHING) == (value is not False)
    if found is _NOTHING:
        return op in OF_NOTHING
    return _TESTS[op](found, value)


def _find(path: str, facts: dict[str, Any]) -> Any:
    found: Any = facts
    for step in path.split("."):
        if not isinstance(found, dict) or step not in found:
            return _NOTHING
        found = found[step]
    return _NOTHING if found is None else found


def _same(found: Any, value: Any) -> bool:
    return found == value and isinstance(found, bool) == isinstance(value, bool)


def _ranked(found: Any, value: Any) -> bool:
    """Only numbers with numbers and texts with texts can be put in order."""
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (found, value))
    return numbers or (isinstance(found, str) and isinstance(value, str))


def _contains(found: Any, value: Any) -> bool:
    if isinstance(found, str | dict):
        return isinstance(value, str) and value in found
    return isinstance(found, list) and value in found


_TESTS: dict[str, Any] = {
    "eq": _same,
    "ne": lambda found, value: not _same(found, value),
    "in": lambda found, value: any(_same(found, each) for each in value),
    "not_in": lambda found, value: not any(_same(found, each) for each in value),
    "gt": lambda found, value: _ranked(found, value) and found > value,
    "gte": lambda found, value: _ranked(found, value) and found >= value,
    "lt": lambda found, value: _ranked(found, value) and found < value,
    "lte": lambda found, value: _ranked(found, value) and found <= value,
    "contains": _contains,
    "starts_with": lambda found, value: isinstance(found, str) and found.startswith(value),
    "matches": lambda found, value: isinstance(found, str) and expressions.matches(found, value),
}
