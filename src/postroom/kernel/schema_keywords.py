"""Keywords of JSON Schema that end in time: a schema is written by a tenant, and checked where all wait.

Regular expressions are those of rules, which take time in proportion to the text; items are found unique by
hashing; and every keyword looks at how long the whole check has taken.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from postroom.kernel import expressions

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


class OutOfTime(Exception):
    """The check of a body took longer than it may."""


class ValidationTimer:
    """Counts the time this thread works, not the time it waits for others."""

    def __init__(self, most_s: float) -> None:
        self._most_s = most_s
        self._until = 0.0

    def start(self) -> None:
        self._until = time.thread_time() + self._most_s

    def look(self) -> None:
        if time.thread_time() > self._until:
            raise OutOfTime

    def expect_match(self, pattern: str, text: str) -> None:
        """Before a text is matched, since nothing can end that once it has begun."""
        seconds = expressions.estimate_match_ns(pattern, len(text)) / 1e9
        if seconds > self._most_s:
            raise OutOfTime


def timed(stopwatch: ValidationTimer) -> Any:
    """A class of validators whose keywords look at this watch."""

    def watched(keyword: Keyword) -> Keyword:
        def look_first(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
            stopwatch.look()
            return keyword(validator, value, instance, schema)

        return look_first

    def matches(text: str, pattern: str) -> bool:
        stopwatch.expect_match(pattern, text)
        return expressions.matches(text, pattern)

    keywords = {**Draft202012Validator.VALIDATORS, **_own_keywords(matches)}
    return extend(Draft202012Validator, {name: watched(keyword) for name, keyword in keywords.items()})


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if wanted and isinstance(instance, list) and len({_hashable(each) for each in instance}) < len(instance):
        yield ValidationError("an item is there twice")


def _hashable(value: Any) -> Any:
    """Equal for what JSON Schema calls equal: 1 is 1.0, and neither is true."""
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, list):
        return (list, tuple(_hashable(each) for each in value))
    if isinstance(value, dict):
        return (dict, frozenset((name, _hashable(each)) for name, each in value.items()))
    return value


def _own_keywords(matches: Callable[[str, str], bool]) -> dict[str, Keyword]:
    def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if isinstance(instance, str) and not matches(instance, pattern):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")

    def _pattern_properties(
        validator: Any, patterns: dict[str, Any], instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        if not isinstance(instance, dict):
            return
        for pattern, subschema in patterns.items():
            for name, value in instance.items():
                if matches(name, pattern):
                    yield from validator.descend(value, subschema, path=name, schema_path=pattern)

    def _additional_properties(
        validator: Any, allowed: Any, instance: Any, schema: dict[str, Any]
    ) -> Iterator[ValidationError]:
        if not isinstance(instance, dict):
            return
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        extra = [
            name
            for name in instance
            if name not in known and not any(matches(name, pattern) for pattern in patterns)
        ]
        if isinstance(allowed, dict):
            for name in extra:
                yield from validator.descend(instance[name], allowed, path=name)
        elif extra and not allowed:
            names = ", ".join(repr(name) for name in sorted(extra))
            yield ValidationError(f"{names} must not be there")

    return {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
