"""JSON Schemas (2020-12) that message bodies must match: checked when registered, compiled once.

A schema stands alone: what it refers to must be in it. Nothing is ever fetched.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from postroom.errors import InvalidField, SchemaViolation
from postroom.kernel import expressions, jsontext
from postroom.kernel.costly_checks import MOST_NS, CostlyCheck, NeededChecks
from postroom.kernel.model import Schema

if TYPE_CHECKING:  # the library takes long to import, and most rooms have no schema
    from jsonschema.exceptions import ValidationError

    from postroom.kernel.schema_keywords import ValidationTimer

PROBLEMS_SHOWN = 5
TOO_LONG = "it takes too long to check; make the schema or the body simpler"
# So many schemas are remembered as slow, for so many bodies: a pause of this process may be mistaken for it.
MOST_SLOW = 1000
SLOW_FOR = 100
SHOWN_CHARS = 200
DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Validators:
    """For one thread. What may take longer than `most_s` is not checked here, but told by `OutOfTime`."""

    def __init__(self, most_s: float = MOST_NS / 1e9) -> None:
        self._most_s = most_s
        self._compiled: dict[str, Any] = {}
        self._timer: ValidationTimer | None = None
        # From which size on bodies are not tried here, and how many more of them.
        self._slow: dict[str, tuple[int, int]] = {}

    def check(self, schema: Schema, body: bytes | None, needed: NeededChecks) -> None:
        """Raise unless the body, which is JSON, is as the schema wants it."""
        from postroom.kernel.schema_keywords import OutOfTime

        body = body or b"null"
        key = jsontext.text(schema.document)
        slow, rest = self._slow.get(key, (0, 0))
        if len(body) < slow or not rest:
            try:
                refuse(schema, self.find_problems(key, schema.document, jsontext.decode(body)))
                return
            except OutOfTime:
                if len(self._slow) > MOST_SLOW:
                    self._slow.clear()
                self._slow[key] = (len(body), SLOW_FOR)
        else:
            self._slow[key] = (slow, rest - 1)
        answer = needed.ask(CostlyCheck("schema", key.encode(), body, body))
        if answer is not None:
            refuse(schema, answer.problems if answer.in_time else [("", TOO_LONG)])

    def find_problems(self, key: str, document: Any, body: Any) -> list[tuple[str, str]]:
        """The first few, each with its place. `key`: the document as a text."""
        from referencing import Registry

        from postroom.kernel.schema_keywords import OutOfTime, ValidationTimer, timed

        timer = self._timer = self._timer or ValidationTimer(self._most_s)
        # By content: a version whose registration was undone may come back as something else.
        validator = self._compiled.get(key)
        if validator is None:
            validator = timed(timer)(_without_dialect(document), registry=Registry())
            self._compiled[key] = validator
        found: list[tuple[str, str]] = []
        timer.start()
        try:
            for error in validator.iter_errors(body):
                found.append(_told(error))
                if len(found) == PROBLEMS_SHOWN:
                    break
        except OutOfTime:
            raise
        except Exception as error:
            found = [("", f"the schema itself cannot be applied ({type(error).__name__})")]
        return found


def refuse(schema: Schema, found: Sequence[tuple[str, str]]) -> None:
    """Raise if there are problems."""
    if found:
        problems = "; ".join(f"{place.removeprefix('.') or '$'}: {message}" for place, message in found)
        details = [{"field": f"body{place}", "message": message} for place, message in found]
        raise SchemaViolation(schema=f"{schema.name} v{schema.version}", problems=problems, details=details)


def _told(error: "ValidationError") -> tuple[str, str]:
    """Where and what; a message that quotes the whole body is cut."""
    return _cut(error.json_path.removeprefix("$")), _cut(error.message)


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"


def check_document(document: Any) -> None:
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.exceptions import SchemaError

    if not isinstance(document, dict):
        raise InvalidField("document", "must be a JSON object")
    try:
        # Which formats it knows would otherwise depend on what else is installed.
        Draft202012Validator.check_schema(document, format_checker=FormatChecker(formats=("regex",)))
        _check_parts(document)
    except SchemaError as error:
        raise InvalidField("document", f"is not a JSON Schema ({_cut(error.message)})") from None
    except RecursionError:
        raise InvalidField("document", "is nested too deeply") from None


def _check_parts(document: dict[str, Any]) -> None:
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    resolver = Registry().resolver_with_root(DRAFT202012.create_resource(document))
    names: set[str] = set()
    for name, value in _keywords(document):
        names.add(name)
        if name == "$schema" and str(value).removesuffix("#") != DIALECT:
            raise InvalidField("document", f"is of the kind {value!r}; only {DIALECT} is known")
        if name in ("$ref", "$dynamicRef") and isinstance(value, str):
            _check_reference(resolver, value)
        if name == "pattern" and isinstance(value, str):
            expressions.check_pattern(value, "document.pattern")
        if name == "patternProperties" and isinstance(value, dict):
            for pattern in value:
                expressions.check_pattern(pattern, "document.patternProperties")
    if {"patternProperties", "unevaluatedProperties"} <= names:
        raise InvalidField(
            "document", "has both patternProperties and unevaluatedProperties; use one of them"
        )


def _check_reference(resolver: Any, reference: str) -> None:
    from referencing.exceptions import Unresolvable

    try:
        found = resolver.lookup(reference).contents
    except (Unresolvable, ValueError):
        raise InvalidField("document", f"refers to {reference!r}, which is not in it") from None
    if not isinstance(found, dict | bool):
        raise InvalidField("document", f"refers to {reference!r}, which is no schema")


# Under these names a schema holds data, in which no name means anything.
_DATA = frozenset({"const", "enum", "default", "examples"})
# Under these, schemas by names of their own.
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def _keywords(part: Any) -> Iterator[tuple[str, Any]]:
    """Every keyword of a schema and of all schemas in it."""
    if isinstance(part, list):
        for value in part:
            yield from _keywords(value)
    elif isinstance(part, dict):
        for name, value in part.items():
            yield name, value
            if name in _NAMED and isinstance(value, dict):
                yield from _keywords(list(value.values()))
            elif name not in _DATA:
                yield from _keywords(value)


def _without_dialect(part: Any) -> Any:
    """Where a part names its dialect, the library would take its own keywords instead of ours."""
    if isinstance(part, list):
        return [_without_dialect(value) for value in part]
    if not isinstance(part, dict):
        return part
    return {
        name: value if name in _DATA else _without_dialect(value)
        for name, value in part.items()
        if not (name == "$schema" and isinstance(value, str))
    }
