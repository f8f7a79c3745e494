"""A review that nobody could answer is refused when it is asked for, by what is wrong with it."""

from typing import Any

import pytest

from postroom.kernel.reviews.sections import HitlInvalid, option_id
from postroom.kernel.reviews.spec import LONGEST_S, MOST_SECTIONS, check_spec, is_sound

DECISION: dict[str, Any] = {"type": "decision", "options": ["yes", "no"]}


def spec(*sections: Any, **more: Any) -> dict[str, Any]:
    return {"sections": [DECISION, *sections], **more}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ([], "it must be a JSON object"),
        (spec(colour="red"), "'colour' is not a part of it"),
        ({"sections": []}, f"sections must be a list of 1 to {MOST_SECTIONS}"),
        ({"sections": [DECISION] * (MOST_SECTIONS + 1)}, "sections must be a list"),
        (spec("text"), "sections[1].type must be one of"),
        (spec({"type": "context"}), "sections[1].content must be a text"),
        (spec({"type": "input", "field": ""}), "sections[1].field must be a text"),
        (spec({"type": "input", "field": "a", "kind": "colour"}), "sections[1].kind must be one of"),
        (spec({"type": "input", "field": "a", "kind": "choice"}), "sections[1].options must be a list"),
        (
            spec({"type": "input", "field": "a", "kind": "choice", "options": ["x", "x"]}),
            "a list of different texts",
        ),
        (spec(DECISION), "there must be one decision section, not 2"),
        ({"sections": [{"type": "input", "field": "a"}]}, "there must be one decision section, not 0"),
        (spec({"type": "input", "field": "decision"}), "two sections have the same field"),
        (spec(timeout_s=True), f"timeout_s must be a number of seconds from 0 to {LONGEST_S}"),
        (spec(timeout_s=0), "timeout_s must be a number"),
        (spec(default={"decision": "yes"}), "a default or an escalation needs timeout_s"),
        (spec(timeout_s=5, escalation={}), "escalation must name a queue or an assignee"),
        (spec(timeout_s=5, escalation={"queue": "q", "timeout_s": "long"}), "timeout_s must be a number"),
        (spec(on_decision={"maybe": {"archive": True}}), "on_decision may have entries for no, yes"),
        (spec(on_decision={"yes": {"archive": False}}), "on_decision.yes must name a queue"),
        (spec(timeout_s=5, default={"decision": "maybe"}), "must be one of yes, no"),
    ],
)
def test_what_cannot_be_answered_is_refused(wrong: Any, told: str) -> None:
    with pytest.raises(HitlInvalid) as refused:
        check_spec(wrong)
    assert told in str(refused.value)
    assert not is_sound(wrong)


def test_what_can_be_answered_is_not() -> None:
    whole = spec(
        {"type": "context", "content": "Pay?"},
        {"type": "input", "field": "note"},
        {"type": "input", "field": "how", "kind": "choice", "options": [{"id": "cash", "label": "Cash"}]},
        timeout_s=60,
        default={"decision": "no"},
        escalation={"assignee": "boss", "timeout_s": 60},
        on_decision={"yes": {"queue": "pay"}, "no": {"archive": True}},
    )
    check_spec(whole)
    assert is_sound(whole)
    assert option_id({"id": "cash"}) == option_id("cash") == "cash"
