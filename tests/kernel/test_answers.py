"""An answer that does not fit its review is refused by what is wrong with the answer, not with the review."""

from typing import Any

import pytest

from postroom.kernel.reviews.answers import AnswerInvalid, check_answer, is_answer

SPEC: dict[str, Any] = {
    "sections": [
        {"type": "context", "title": "Text", "content": "Pay?"},
        {"type": "decision", "field": "decision", "options": ["approve", "reject"]},
        {"type": "input", "field": "amount", "kind": "number", "required": True},
        {"type": "input", "field": "remark"},
    ]
}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("approve", "it must be an object with a value for each field"),
        ({"decision": "maybe", "amount": 1}, "decision is 'maybe', must be one of approve, reject"),
        ({"decision": "approve"}, "amount is required"),
        ({"decision": "approve", "amount": "much"}, "amount is 'much', must be number"),
        ({"amount": 1}, "decision is required"),
        ({"decision": "approve", "amount": 1, "mood": "good"}, "nobody asked for 'mood'"),
    ],
)
def test_a_wrong_answer_is_told_what_is_wrong_with_it(answer: Any, told: str) -> None:
    with pytest.raises(AnswerInvalid) as refused:
        check_answer(SPEC, answer)
    assert str(refused.value).startswith("The answer does not fit the review: ")
    assert told in str(refused.value)
    assert refused.value.code == "HITL_INVALID"


def test_a_right_answer_passes() -> None:
    check_answer(SPEC, {"decision": "approve", "amount": 3})
    check_answer(SPEC, {"decision": "reject"}, inputs=False)


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("text", "a", 5),
        ("number", 1.5, True),
        ("boolean", False, "no"),
        ("date", "2026-11-17", "17.11.2026"),
        ("date", "2026-11-17", 20261117),
        ("choice", "cash", "card"),
    ],
)
def test_each_kind_of_input_takes_its_own(kind: str, right: Any, wrong: Any) -> None:
    asked = {"type": "input", "field": "x", "kind": kind, "options": ["cash", {"id": "cheque"}]}
    spec = {"sections": [SPEC["sections"][1], asked]}
    check_answer(spec, {"decision": "approve", "x": right})
    assert is_answer(spec, {"decision": "approve", "x": right})
    with pytest.raises(AnswerInvalid, match="x is"):
        check_answer(spec, {"decision": "approve", "x": wrong})
    assert not is_answer(spec, {"decision": "approve", "x": wrong})
