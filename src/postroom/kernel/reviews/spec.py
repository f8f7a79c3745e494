"""The spec of a review: sections to show, one decision, inputs, a time limit, a default, an escalation.

It is checked when the message is published, so that an open review can always be answered.
"""

from typing import Any

from postroom.kernel.reviews.answers import check_answer
from postroom.kernel.reviews.sections import HitlInvalid, field_of, option_id

KINDS = ("text", "number", "boolean", "date", "choice")
TYPES = ("context", "decision", "input")
MOST_SECTIONS = 50
LONGEST_S = 366 * 24 * 3600
KNOWN = frozenset(
    {
        "sections",
        "timeout_s",
        "default",
        "escalation",
        "assignee",
        "title",
        "on_decision",
        "pattern",
        "version",
        "parameters",
        "waiting",
        "escalated",
    }
)


def check_spec(spec: Any) -> None:
    if not isinstance(spec, dict):
        raise HitlInvalid(problem="it must be a JSON object")
    unknown = sorted(set(spec) - KNOWN)
    if unknown:
        raise HitlInvalid(problem=f"{unknown[0]!r} is not a part of it; known are {', '.join(sorted(KNOWN))}")
    sections = spec.get("sections")
    if not isinstance(sections, list) or not 0 < len(sections) <= MOST_SECTIONS:
        raise HitlInvalid(problem=f"sections must be a list of 1 to {MOST_SECTIONS}")
    fields: list[str] = []
    decisions = 0
    for number, section in enumerate(sections):
        kind = section.get("type") if isinstance(section, dict) else None
        if kind not in TYPES:
            raise HitlInvalid(problem=f"sections[{number}].type must be one of {', '.join(TYPES)}")
        if kind == "context":
            _check_text(section, "content", number)
            continue
        if kind == "input" or "field" in section:
            _check_text(section, "field", number)
        fields.append(field_of(section))
        decisions += kind == "decision"
        _check_choices(section, kind, number)
    if decisions != 1:
        raise HitlInvalid(problem=f"there must be one decision section, not {decisions}")
    if len(set(fields)) != len(fields):
        raise HitlInvalid(problem="two sections have the same field")
    _check_time(spec, "timeout_s")
    _check_end(spec)


def is_sound(spec: Any) -> bool:
    try:
        check_spec(spec)
    except HitlInvalid:
        return False
    return True


def _check_text(section: dict[str, Any], name: str, number: int) -> None:
    if not isinstance(section.get(name), str) or not section[name]:
        raise HitlInvalid(problem=f"sections[{number}].{name} must be a text")


def _check_choices(section: dict[str, Any], kind: str, number: int) -> None:
    wanted = "choice" if kind == "decision" else section.get("kind", "text")
    if wanted not in KINDS:
        raise HitlInvalid(problem=f"sections[{number}].kind must be one of {', '.join(KINDS)}")
    if wanted == "choice":
        options = section.get("options")
        ids = [option_id(option) for option in options] if isinstance(options, list) else []
        if not ids or not all(isinstance(each, str) and each for each in ids) or len(set(ids)) != len(ids):
            raise HitlInvalid(problem=f"sections[{number}].options must be a list of different texts")


def _check_time(part: dict[str, Any], name: str) -> None:
    seconds = part.get(name)
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= LONGEST_S:
        raise HitlInvalid(problem=f"{name} must be a number of seconds from 0 to {LONGEST_S}")


def _check_end(spec: dict[str, Any]) -> None:
    default, escalation = spec.get("default"), spec.get("escalation")
    if default is not None:
        check_answer(spec, default, inputs=False)
    if escalation is not None:
        if not isinstance(escalation, dict) or not (escalation.get("queue") or escalation.get("assignee")):
            raise HitlInvalid(problem="escalation must name a queue or an assignee")
        _check_time(escalation, "timeout_s")
    if (default is not None or escalation is not None) and spec.get("timeout_s") is None:
        raise HitlInvalid(problem="a default or an escalation needs timeout_s")
    follow = spec.get("on_decision")
    if follow is not None:
        decided = next(section for section in spec["sections"] if section["type"] == "decision")
        options = {option_id(option) for option in decided["options"]}
        if not isinstance(follow, dict) or not set(follow) <= options:
            raise HitlInvalid(problem=f"on_decision may have entries for {', '.join(sorted(options))}")
        for option, step in follow.items():
            known = isinstance(step, dict) and (
                isinstance(step.get("queue"), str) or step.get("archive") is True
            )
            if not known:
                raise HitlInvalid(
                    problem=f'on_decision.{option} must name a queue, or be {{"archive": true}}'
                )


def decision_field(spec: dict[str, Any]) -> str:
    return next(field_of(section) for section in spec["sections"] if section["type"] == "decision")
