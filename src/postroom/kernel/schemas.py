"""JSON Schemas (2020-12) that message bodies must match: checked when registered, compiled once."""

from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator

from postroom.errors import InvalidField, SchemaViolation
from postroom.kernel.model import Schema

PROBLEMS_SHOWN = 5


class Validators:
    def __init__(self) -> None:
        self._compiled: dict[tuple[int, str, int], Validator] = {}

    def check(self, scope_id: int, schema: Schema, body: Any) -> None:
        key = (scope_id, schema.name, schema.version)
        validator = self._compiled.get(key)
        if validator is None:
            validator = self._compiled[key] = Draft202012Validator(schema.document)
        problems = []
        for error in validator.iter_errors(body):
            problems.append(f"{error.json_path.removeprefix('$.')}: {error.message}")
            if len(problems) == PROBLEMS_SHOWN:
                break
        if problems:
            raise SchemaViolation(schema=f"{schema.name} v{schema.version}", problems="; ".join(problems))


def check_document(document: Any) -> None:
    if not isinstance(document, dict):
        raise InvalidField("document", "must be a JSON object")
    try:
        Draft202012Validator.check_schema(document)
    except SchemaError as error:
        raise InvalidField("document", f"is not a JSON Schema ({error.message})") from None
