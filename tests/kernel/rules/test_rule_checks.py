"""A rule that could never act, or act wrongly, is refused by its field."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from postroom.errors import InvalidField
from postroom.kernel.model import Document
from postroom.kernel.rows import Row
from postroom.kernel.rules import conditions
from postroom.kernel.rules.breaker import MOST_MATCHES, WINDOW, ProcessBreaker
from postroom.kernel.rules.conditions import Condition, holds
from postroom.kernel.rules.rule import MOST_CONDITIONS, MOST_TARGETS, check, ordered, read
from postroom.kernel.transitions.context import TransitionContext

ARCHIVE = {"type": "archive"}
GOOD: dict[str, Any] = {"id": "r", "name": "r", "trigger": "message_published", "action": ARCHIVE}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"priority": 1_000_001}, "priority"),
        ({"conditions": [["a", "eq", 1]] * (MOST_CONDITIONS + 1)}, "conditions"),
        ({"conditions": [["a b", "eq", 1]]}, "conditions.0.field"),
        ({"conditions": [["a", "eq", 1], ["a", "like", 1]]}, "conditions.1.op"),
        ({"conditions": [["a", "in", "text"]]}, "conditions.0.value"),
        ({"conditions": [["a", "starts_with", 5]]}, "conditions.0.value"),
        ({"conditions": [["a", "matches", "("]]}, "conditions.0.value"),
        ({"expression": "1 +"}, "expression"),
        ({"action": {"type": "route"}}, "action.target_queue_id"),
        ({"action": {"type": "fan_out"}}, "action.target_queue_ids"),
        ({"action": {"type": "fan_out", "targets": [1] * (MOST_TARGETS + 1)}}, "action.target_queue_ids"),
        ({"action": {"type": "ask_human"}}, "action"),
        ({"action": {"type": "ask_human", "pattern": "p", "spec": {}}}, "action"),
        ({"action": {"type": "escalate", "priority_tier": "top"}}, "action.priority_tier"),
        ({"action": {"type": "escalate", "priority_score": 1001}}, "action.priority_score"),
        ({"action": {"type": "escalate", "raise_by": -1}}, "action.raise_by"),
        ({"action": {"type": "transform"}}, "action"),
        ({"action": {"type": "escalate"}}, "action"),
    ],
)
def test_a_rule_is_refused_by_what_is_wrong_with_it(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidField) as refused:
        check(_rule(change))
    assert refused.value.data["field"] == field


def _rule(change: dict[str, Any]) -> Any:
    data = {**GOOD, **change}
    data["conditions"] = [
        dict(zip(("field", "op", "value"), each, strict=True)) for each in data.get("conditions", [])
    ]
    return read(data)


@pytest.mark.parametrize(
    "action",
    [
        {"type": "route", "target": 1},
        {"type": "fan_out", "targets": [1, 2]},
        {"type": "ask_human", "pattern": "p"},
        {"type": "transform", "set_labels": {"a": 1}},
        {"type": "transform", "raise_by": 5},
        {"type": "escalate", "priority_tier": "high"},
        {"type": "escalate", "target": 3},
        ARCHIVE,
    ],
)
def test_a_rule_that_says_what_to_do_passes(action: dict[str, Any]) -> None:
    check(_rule({"action": action, "conditions": [["labels.tier", "matches", "^gold$"]]}))


@pytest.mark.parametrize(
    ("field", "op", "value", "does"),
    [
        ("text", "eq", "hello", True),
        ("flag", "eq", 1, False),
        ("text", "ne", "bye", True),
        ("number", "in", [1, 5], True),
        ("number", "not_in", [1, 5], False),
        ("number", "gt", 4, True),
        ("number", "gte", 5, True),
        ("number", "lt", "9", False),
        ("number", "lte", 4, False),
        ("text", "contains", "ell", True),
        ("list", "contains", "a", True),
        ("number", "contains", "5", False),
        ("text", "starts_with", "he", True),
        ("text", "matches", "l+o$", True),
        ("deep.inner", "eq", 1, True),
        ("deep.gone", "exists", True, False),
        ("deep.gone", "exists", False, True),
        ("text", "exists", None, True),
        ("nothing", "eq", None, False),
        ("gone", "ne", 1, True),
        ("gone", "not_in", [1], True),
        ("gone", "gt", 1, False),
    ],
)
def test_a_condition_holds_or_not(field: str, op: str, value: Any, does: bool) -> None:
    facts = {
        "text": "hello",
        "flag": True,
        "number": 5,
        "list": ["a"],
        "deep": {"inner": 1},
        "nothing": None,
    }
    condition = Condition(field, op, value)
    conditions.check(condition, "conditions.0")
    assert holds(condition, facts) is does


def test_what_cannot_be_read_as_a_rule_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    kept = [
        {**GOOD, "id": "late", "priority": 5},
        {"id": "broken"},
        {**GOOD, "id": "early", "priority": 1},
    ]
    documents = [
        Document(kind="rule", key=each["id"], version=1, data=each, created_at=0, updated_at=0)
        for each in kept
    ]
    assert [rule.id for rule in ordered(documents)] == ["early", "late"]
    assert "broken" in caplog.text


def at(now: int) -> TransitionContext:
    return cast("TransitionContext", SimpleNamespace(now=now))


def of(conversation: str) -> Row:
    return cast("Row", SimpleNamespace(id="m", correlation_id=conversation))


def test_a_rule_that_meets_a_conversation_too_often_trips() -> None:
    breaker = ProcessBreaker()
    assert not any(breaker.trips(at(now), "r", of("talk")) for now in range(MOST_MATCHES))
    assert breaker.trips(at(MOST_MATCHES), "r", of("talk"))
    assert not breaker.trips(at(0), "r", of("other talk"))
    assert not breaker.trips(at(MOST_MATCHES + WINDOW), "r", of("talk")), "a minute later it counts anew"


def test_conversations_of_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.kernel.rules.breaker.MOST_KNOWN", 10)
    breaker = ProcessBreaker()
    for number in range(11):
        breaker.trips(at(number), "r", of(f"talk {number}"))
    breaker.trips(at(WINDOW * 2), "r", of("new"))
    assert set(breaker._met) == {("r", "new")}
