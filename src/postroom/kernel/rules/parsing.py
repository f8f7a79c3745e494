"""A rule from the document a person wrote, with its queues looked up."""

from collections.abc import Callable
from typing import Any

import msgspec

from postroom.errors import InvalidField
from postroom.kernel.rules import rule
from postroom.kernel.rules.rule import Action, ActionType, Rule

# The queue of a name, for the field that names it.
Find = Callable[[str, str], int]
FIELDS = frozenset(
    {
        "name",
        "trigger",
        "action",
        "enabled",
        "priority",
        "source_queue_id",
        "conditions",
        "match",
        "expression",
    }
)
# Fields that are written as they come.
PLAIN = frozenset({"name", "enabled", "priority", "match", "expression"})


def drafted(document: dict[str, Any], find: Find, *, rule_id: str, now: int) -> Rule:
    _refuse_unknown(document)
    data = {name: value for name, value in document.items() if name not in ("action", "source_queue_id")}
    data |= {"id": rule_id, "created_at": now, "updated_at": now}
    data.setdefault("name", "")
    data["trigger"] = _trigger(data.get("trigger", "message_published"))
    if document.get("source_queue_id") is not None:
        data["source"] = find(document["source_queue_id"], "source_queue_id")
    data["action"] = msgspec.to_builtins(action(document.get("action"), find))
    return _checked(data)


def revised(kept: Rule, changes: dict[str, Any], find: Find, *, now: int) -> Rule:
    """The rule with these parts of its document changed; what is not named stays."""
    _refuse_unknown(changes)
    data = rule.written(kept) | {name: changes[name] for name in PLAIN & set(changes)}
    data["updated_at"] = now
    if changes.get("trigger") is not None:
        data["trigger"] = _trigger(changes["trigger"])
    if changes.get("conditions") is not None:
        data["conditions"] = changes["conditions"]
    if changes.get("action") is not None:
        data["action"] = msgspec.to_builtins(action(changes["action"], find))
    if "source_queue_id" in changes:
        name = changes["source_queue_id"]
        data["source"] = None if name is None else find(name, "source_queue_id")
    return _checked(data)


def _checked(data: dict[str, Any]) -> Rule:
    made = rule.read(data)
    rule.check(made)
    return made


def _refuse_unknown(document: dict[str, Any]) -> None:
    unknown = sorted(set(document) - FIELDS)
    if unknown:
        raise InvalidField(unknown[0], f"is not a part of a rule; known are {', '.join(sorted(FIELDS))}")


def _trigger(name: Any) -> Any:
    return f"message_{name}" if isinstance(name, str) and not name.startswith("message_") else name


def action(document: Any, find: Find) -> Action:
    if not isinstance(document, dict):
        raise InvalidField("action", "must be a JSON object with a type")
    data = {name: value for name, value in document.items() if not name.startswith("target_queue")}
    if data.get("type") not in list(ActionType):
        known = ", ".join(ActionType)
        raise InvalidField("action.type", f"is {data.get('type')!r}, must be one of: {known}")
    unknown = sorted(set(data) - (set(Action.__struct_fields__) - {"target", "targets"}))
    if unknown:
        raise InvalidField(f"action.{unknown[0]}", "is not a part of an action")
    if document.get("target_queue_id") is not None:
        data["target"] = find(document["target_queue_id"], "action.target_queue_id")
    names = document.get("target_queue_ids") or []
    data["targets"] = [find(name, "action.target_queue_ids") for name in names]
    try:
        return msgspec.convert(data, Action)
    except msgspec.ValidationError as error:
        raise InvalidField("action", str(error).lower()) from None
