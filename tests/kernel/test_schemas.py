"""Schemas are written by tenants and applied where all wait: none may fetch, fail or take long."""

from typing import Any

import pytest

from postroom.errors import InvalidField, SchemaViolation
from postroom.kernel import jsontext
from postroom.kernel.costly_checks import NeededChecks
from postroom.kernel.model import Schema
from postroom.kernel.schemas import Validators, check_document
from postroom.runtime.check_runner import CheckRunner


def problems(document: dict[str, Any], body: Any) -> list[dict[str, str]]:
    check_document(document)
    schema = Schema(scope="work", name="order", version=1, document=document, created_at=0)
    needed, runner = NeededChecks(), CheckRunner()
    try:
        Validators().check(schema, jsontext.encode(body), needed)
        if needed.missing:
            answers = NeededChecks(runner.answer(needed.missing))
            Validators().check(schema, jsontext.encode(body), answers)
            assert answers.missing == []
    except SchemaViolation as error:
        return error.data["details"]
    finally:
        runner.close()
    return []


@pytest.mark.parametrize(
    ("document", "body", "fits"),
    [
        ({"pattern": "b"}, "abc", True),
        ({"pattern": r"^\d{3}-\d{4}$"}, "555-1234", True),
        ({"pattern": r"^\d{3}-\d{4}$"}, "555-12345", False),
        ({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}], True),
        ({"uniqueItems": True}, [1, 1.0], False),
        ({"uniqueItems": True}, [{"a": [1]}, {"a": [1.0]}], False),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, True),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"b": 1}, False),
        ({"additionalProperties": {"type": "integer"}}, {"b": "x"}, False),
        ({"patternProperties": {"^x-": {}}, "additionalProperties": False}, {"x-a": 1}, True),
        ({"patternProperties": {"^x-": {"type": "integer"}}}, {"x-a": "1"}, False),
        ({"properties": {"$ref": {"type": "string"}, "pattern": {"type": "integer"}}}, {"pattern": 1}, True),
        ({"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}}, [1, 2], True),
    ],
)
def test_a_body_fits_or_does_not(document: dict[str, Any], body: Any, fits: bool) -> None:
    assert (problems(document, body) == []) is fits


@pytest.mark.parametrize(
    ("document", "body"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 50_000 + "!"),
        ({"patternProperties": {"^(a+)+$": {"type": "null"}}}, {"a" * 5000 + "!": 1}),
        ({"additionalProperties": False, "patternProperties": {"^(a+)+$": {}}}, {"a" * 5000 + "!": 1}),
        ({"uniqueItems": True}, [{"a": n} if n % 2 else n for n in range(10_000)]),
    ],
)
def test_no_keyword_runs_away(document: dict[str, Any], body: Any) -> None:
    problems(document, body)


def doubled(levels: int) -> dict[str, Any]:
    """Each part asks for the next one twice."""
    parts = {f"p{n}": {"allOf": [{"$ref": f"#/$defs/p{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**parts, f"p{levels}": {"type": "integer"}}, "$ref": "#/$defs/p0"}


def test_a_schema_that_doubles_its_work_is_stopped() -> None:
    [problem] = problems(doubled(60), 1)
    assert "too long" in problem["message"]


def test_a_part_that_names_its_dialect_is_bounded_like_the_rest() -> None:
    inner = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#/$defs/p0"}
    document = {**doubled(60), "properties": {"a": inner}}
    del document["$ref"]
    [problem] = problems(document, {"a": 1})
    assert "too long" in problem["message"]


def nested(levels: int) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for _ in range(levels):
        document = {"not": document}
    return document


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"$ref": "http://127.0.0.1:1/schema"}, "which is not in it"),
        ({"$ref": "http://["}, "which is not in it"),
        ({"title": "x", "$ref": "#/title"}, "which is no schema"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "only https"),
        ({"pattern": "("}, "not a JSON Schema"),
        ({"pattern": "^(?=a)"}, "is not a regular expression"),
        ({"patternProperties": {"(?=a)": {}}}, "is not a regular expression"),
        ({"patternProperties": {}, "unevaluatedProperties": False}, "use one of them"),
        (nested(2000), "nested too deeply"),
    ],
)
def test_what_cannot_be_applied_is_refused(document: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidField, match=problem):
        check_document(document)


def test_a_schema_that_refers_to_itself_for_ever_fits_nothing() -> None:
    [problem] = problems({"$ref": "#"}, 1)
    assert "cannot be applied" in problem["message"]


def test_problems_name_their_place_and_do_not_quote_the_whole_body() -> None:
    document = {"type": "array", "items": {"properties": {"n": {"type": "integer"}}}}
    assert problems(document, [{"n": "a; b"}]) == [
        {"field": "body[0].n", "message": "'a; b' is not of type 'integer'"}
    ]
    [long] = problems({"type": "integer"}, "x" * 100_000)
    assert len(long["message"]) <= 200
