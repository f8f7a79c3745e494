"""The parts of a review: what they ask for, and under which names."""

from typing import Any

from postroom.errors import Invalid


class HitlInvalid(Invalid):
    """The review spec is not valid: {problem}."""

    code = "HITL_INVALID"


def option_id(option: Any) -> Any:
    """An option is a text, or an object with an id and a label."""
    return option.get("id") if isinstance(option, dict) else option


def field_of(section: dict[str, Any]) -> str:
    """Under which name the answer is kept."""
    return section.get("field", "decision")
