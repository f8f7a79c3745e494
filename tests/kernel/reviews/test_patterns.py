"""A review pattern is a review once its holes are filled, and is found by its name and version."""

from typing import Any

import pytest

from postroom.errors import InvalidField
from postroom.kernel.model import Document
from postroom.kernel.reviews import patterns
from postroom.kernel.reviews.sections import HitlInvalid

SPEC: dict[str, Any] = {
    "sections": [
        {"type": "context", "content": "Pay {{ amount }} to {{ person.name }}?"},
        {"type": "decision", "options": ["yes", "no"]},
    ],
    "timeout_s": "{{ limits.seconds }}",
}


class Shelf:
    """Patterns as they were registered, one second after another."""

    def __init__(self, *versions: str) -> None:
        self._kept = [
            Document(
                kind=patterns.KIND,
                key=patterns.key_of(7, "pay", version),
                version=1,
                data={"name": "pay", "version": version, "spec": SPEC},
                created_at=number,
                updated_at=number,
            )
            for number, version in enumerate(versions)
        ]

    def documents(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Document]:
        return [each for each in self._kept if each.kind == kind and each.key.startswith(prefix)]


@pytest.mark.parametrize(
    ("name", "version", "spec", "field"),
    [
        ("has space", "1.0", SPEC, "name"),
        (5, "1.0", SPEC, "name"),
        ("pay", "one", SPEC, "version"),
        ("pay", None, SPEC, "version"),
        ("pay", "1.0", {**SPEC, "title": "{{ person }}"}, "spec"),
    ],
)
def test_what_is_no_pattern_is_refused_by_its_field(name: Any, version: Any, spec: Any, field: str) -> None:
    with pytest.raises(InvalidField) as refused:
        patterns.check_pattern(name, version, spec)
    assert refused.value.data["field"] == field


@pytest.mark.parametrize("spec", ["text", {"sections": []}])
def test_what_would_be_no_review_is_no_pattern(spec: Any) -> None:
    with pytest.raises(HitlInvalid):
        patterns.check_pattern("pay", "1.0", spec)


def test_holes_may_stand_for_texts_and_for_numbers() -> None:
    patterns.check_pattern("pay", "1.0", SPEC)


def test_the_version_that_is_named_is_found_else_the_last_registered() -> None:
    shelf = Shelf("2.0", "1.0", "1.10")
    assert patterns.find(shelf, "t", 7, "pay", "2.0").data["version"] == "2.0"
    assert patterns.find(shelf, "t", 7, "pay", None).data["version"] == "1.10"
    for name, version in (("pay", "3.0"), ("buy", None)):
        with pytest.raises(patterns.PatternNotFound):
            patterns.find(shelf, "t", 7, name, version)


def test_a_pattern_is_filled_and_what_the_asker_adds_counts() -> None:
    parameters = {"amount": 5, "person": {"name": "Ann"}, "limits": {"seconds": 30}}
    made = patterns.expanded(
        Shelf("1.0"), "t", 7, {"pattern": "pay", "parameters": parameters, "assignee": "boss"}
    )
    assert made["sections"][0]["content"] == "Pay 5 to Ann?"
    assert (made["timeout_s"], made["assignee"]) == (30, "boss")
    assert (made["pattern"], made["version"]) == ("pay", "1.0")


@pytest.mark.parametrize(
    "asked", [{"pattern": "pay", "parameters": [1]}, {"pattern": "pay", "version": 1.0}, {"sections": []}]
)
def test_what_cannot_be_expanded_is_refused(asked: Any) -> None:
    with pytest.raises(HitlInvalid):
        patterns.expanded(Shelf("1.0"), "t", 7, asked)
