"""JSON Schemas (2020-12) that message bodies must match: checked when registered, compiled once.

A schema stands alone: what it refers to must be in it. Nothing is ever fetched.
"""

from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from postroom.errors import InvalidField, SchemaViolation
from postroom.kernel import jsontext
from postroom.kernel.model import Schema

PROBLEMS_SHOWN = 5


class Validators:
    def __init__(self) -> None:
        self._compiled: dict[str, Validator] = {}

    def check(self, schema: Schema, body: Any) -> None:
        # By content: a version whose registration was undone may come back as something else.
        key = jsontext.text(schema.document)
        validator = self._compiled.get(key)
        if validator is None:
            validator = self._compiled[key] = compiled(schema.document)
        problems = []
        try:
            for error in validator.iter_errors(body):
                problems.append(f"{error.json_path.removeprefix('$.')}: {error.message}")
                if len(problems) == PROBLEMS_SHOWN:
                    break
        except (Unresolvable, RecursionError) as error:
            problems = [f"the schema itself cannot be applied ({type(error).__name__})"]
        if problems:
            raise SchemaViolation(schema=f"{schema.name} v{schema.version}", problems="; ".join(problems))


def compiled(document: dict[str, Any]) -> Validator:
    return Draft202012Validator(document, registry=Registry())


def check_document(document: Any) -> None:
    if not isinstance(document, dict):
        raise InvalidField("document", "must be a JSON object")
    try:
        Draft202012Validator.check_schema(document)
    except SchemaError as error:
        raise InvalidField("document", f"is not a JSON Schema ({error.message})") from None
    _check_references(document)


def _check_references(document: dict[str, Any]) -> None:
    resolver = Registry().resolver_with_root(DRAFT202012.create_resource(document))
    for reference in _references(document):
        try:
            resolver.lookup(reference)
        except Unresolvable:
            raise InvalidField("document", f"refers to {reference!r}, which is not in it") from None


# Under these names a schema holds data, in which a "$ref" refers to nothing.
_DATA = frozenset({"const", "enum", "default", "examples"})


def _references(part: Any) -> list[str]:
    found: list[str] = []
    if isinstance(part, dict):
        for name, value in part.items():
            if name in ("$ref", "$dynamicRef") and isinstance(value, str):
                found.append(value)
            elif name not in _DATA:
                found += _references(value)
    elif isinstance(part, list):
        for value in part:
            found += _references(value)
    return found
