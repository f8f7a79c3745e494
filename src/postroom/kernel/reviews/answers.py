"""Whether an answer fits its review."""

from datetime import date
from typing import Any

from postroom.kernel.reviews.sections import HitlInvalid, field_of, option_id


class AnswerInvalid(HitlInvalid):
    """The answer does not fit the review: {problem}."""


def check_answer(spec: dict[str, Any], answer: Any, *, inputs: bool = True) -> None:
    """One of the options, every required input, nothing that was not asked for. `inputs` False: not those."""
    if not isinstance(answer, dict):
        raise AnswerInvalid(problem="it must be an object with a value for each field")
    asked = {field_of(section): section for section in spec["sections"] if section["type"] != "context"}
    unknown = sorted(set(answer) - set(asked))
    if unknown:
        raise AnswerInvalid(problem=f"nobody asked for {unknown[0]!r}; asked for are {', '.join(asked)}")
    for field, section in asked.items():
        decides = section["type"] == "decision"
        if answer.get(field) is None:
            if decides or (inputs and section.get("required", False)):
                raise AnswerInvalid(problem=f"{field} is required")
            continue
        kind = "choice" if decides else section.get("kind", "text")
        if not _fits(kind, section, answer[field]):
            wanted = kind
            if kind == "choice":
                wanted = "one of " + ", ".join(str(option_id(option)) for option in section["options"])
            raise AnswerInvalid(problem=f"{field} is {answer[field]!r}, must be {wanted}")


def is_answer(spec: dict[str, Any], answer: Any) -> bool:
    try:
        check_answer(spec, answer)
    except AnswerInvalid:
        return False
    return True


def _fits(kind: str, section: dict[str, Any], value: Any) -> bool:
    if kind == "choice":
        return value in [option_id(option) for option in section["options"]]
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "boolean":
        return isinstance(value, bool)
    if not isinstance(value, str):
        return False
    if kind == "date":
        try:
            date.fromisoformat(value)
        except ValueError:
            return False
    return True
