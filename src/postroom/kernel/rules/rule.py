"""A rule: when (trigger, queue), if (conditions or an expression), then (one action)."""

import logging
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Literal

import msgspec

from postroom.errors import InvalidField
from postroom.kernel import expressions
from postroom.kernel.model import Document
from postroom.kernel.ordering import TIER_RANK
from postroom.kernel.rules import conditions
from postroom.kernel.rules.conditions import Condition

log = logging.getLogger("postroom.rules")

KIND = "rule"
# The most rules of one scope. A scope that has more from before is not cut: all of them are tried.
MOST_RULES = 200
MOST_TARGETS = 20
MOST_CONDITIONS = 50


class Trigger(StrEnum):
    PUBLISHED = "message_published"
    COMPLETED = "message_completed"
    FAILED = "message_failed"
    DEAD_LETTERED = "message_dead_lettered"
    EXPIRED = "message_expired"


class ActionType(StrEnum):
    ROUTE = "route"
    FAN_OUT = "fan_out"
    TRANSFORM = "transform"
    ESCALATE = "escalate"
    ARCHIVE = "archive"
    ASK_HUMAN = "ask_human"


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which fields count depends on the type; queues are kept by number."""

    type: ActionType
    target: int | None = None
    targets: tuple[int, ...] = ()
    keep: bool = False
    set_labels: dict[str, Any] = msgspec.field(default_factory=dict)
    remove_labels: tuple[str, ...] = ()
    message_type: str | None = None
    priority_tier: str | None = None
    priority_score: int | None = None
    raise_by: int | None = None
    body: Any = None
    pattern: str | None = None
    version: str | None = None
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)
    spec: dict[str, Any] | None = None


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    trigger: Trigger
    action: Action
    enabled: bool = True
    priority: int = 100
    source: int | None = None
    conditions: tuple[Condition, ...] = ()
    match: Literal["all", "any"] = "all"
    expression: str | None = None
    created_at: int = 0
    updated_at: int = 0
    tripped_until: int | None = None
    tripped_why: str | None = None
    acts_as: tuple[tuple[str, str], ...] | None = None
    """Whom access lists must let in for it to act: who made it. None: an administrator, or nobody knows."""

    @property
    def asks_first(self) -> bool:
        """Whether a person is to decide before anybody gets the message. Such a rule never rests: what it
        cannot ask about is kept from everybody."""
        asks = self.action.type is ActionType.ASK_HUMAN or (
            self.action.type is ActionType.ESCALATE and self.action.pattern is not None
        )
        return asks and self.trigger in (Trigger.PUBLISHED, Trigger.FAILED)

    def stands(self, now: int) -> bool:
        """Whether it is to be looked at now."""
        rests = self.tripped_until is not None and self.tripped_until > now
        return self.enabled and (not rests or self.asks_first)


def read(data: dict[str, Any]) -> Rule:
    try:
        return msgspec.convert(data, Rule)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).rpartition(" - at ")
        field = place.strip("`$.") if problem else "rule"
        raise InvalidField(field, (problem or str(error)).lower()) from None


def written(rule: Rule) -> dict[str, Any]:
    return msgspec.to_builtins(rule)


def ordered(documents: Iterable[Document]) -> list[Rule]:
    """In the order in which they are tried; what is no rule is left out, so that it stops nobody."""
    found = []
    for document in documents:
        try:
            found.append(read(document.data))
        except InvalidField as error:
            log.error("%s cannot be read as a rule: %s", document.key, error)
    return sorted(found, key=lambda rule: (rule.priority, rule.created_at, rule.id))


def check(rule: Rule) -> None:
    """Everything that can be known without looking at places and patterns."""
    if not rule.name.strip() or len(rule.name) > 200:
        raise InvalidField("name", "must be a text of 1 to 200 characters")
    if not -1_000_000 <= rule.priority <= 1_000_000:
        raise InvalidField("priority", "must be between -1000000 and 1000000")
    if len(rule.conditions) > MOST_CONDITIONS:
        raise InvalidField("conditions", f"has {len(rule.conditions)}, at most {MOST_CONDITIONS} are allowed")
    for number, condition in enumerate(rule.conditions):
        conditions.check(condition, f"conditions.{number}")
    if rule.expression is not None:
        expressions.check(rule.expression)
    _check_action(rule.action)


def _check_action(action: Action) -> None:
    kind = action.type
    if kind is ActionType.ROUTE and action.target is None:
        raise InvalidField("action.target_queue_id", "is needed to route")
    if kind is ActionType.FAN_OUT and not 0 < len(action.targets) <= MOST_TARGETS:
        raise InvalidField("action.target_queue_ids", f"must name 1 to {MOST_TARGETS} queues")
    if kind is ActionType.ASK_HUMAN and (action.pattern is None) == (action.spec is None):
        raise InvalidField("action", "ask_human needs either a pattern or a spec")
    if action.priority_tier is not None and action.priority_tier not in TIER_RANK:
        raise InvalidField("action.priority_tier", f"must be one of {', '.join(TIER_RANK)}")
    for field in ("priority_score", "raise_by"):
        value = getattr(action, field)
        if value is not None and not 0 <= value <= 1000:
            raise InvalidField(f"action.{field}", f"is {value}, must be between 0 and 1000")
    changes = (action.set_labels, action.remove_labels, action.message_type, action.body)
    ranks = (action.priority_tier, action.priority_score, action.raise_by)
    if kind is ActionType.TRANSFORM and not any(part not in (None, {}, ()) for part in (*changes, *ranks)):
        raise InvalidField("action", "transform needs something to change")
    if kind is ActionType.ESCALATE and not any(
        part is not None for part in (*ranks, action.target, action.pattern)
    ):
        raise InvalidField("action", "escalate needs a priority, a queue or a pattern")
