"""Which rule a message meets first, and why the others did not match."""

import logging
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from postroom.clock import SECOND
from postroom.kernel import checks, expressions, jsontext
from postroom.kernel.expressions import TooMuch
from postroom.kernel.rows import Content, Row
from postroom.kernel.rules import conditions
from postroom.kernel.rules.rule import Rule, Trigger

log = logging.getLogger("postroom.rules")

SLOW_S = 0.25


class RuleMatch(msgspec.Struct, frozen=True):
    """What one rule said to a message."""

    rule: Rule
    matched: bool
    why: str
    seconds: float


def facts_of(row: Row, content: Content, scope: str, queue: str, now: int) -> dict[str, Any]:
    body = None
    if content.content_type == checks.JSON and content.body is not None:
        body = jsontext.decode(content.body)
    return {
        "id": row.id,
        "scope": scope,
        "queue": queue,
        "state": row.state,
        "message_type": row.message_type,
        "content_type": content.content_type,
        "priority_tier": row.priority_tier,
        "priority_score": row.priority_score,
        "source_type": content.source_type,
        "source_id": content.source_id,
        "correlation_id": row.correlation_id,
        "attempts": row.attempts,
        "hops": row.hop,
        "labels": jsontext.decode_any(content.labels, {}),
        "body": body,
        "result": jsontext.decode_any(row.result),
        "failure_reason": row.failure_reason,
        "failure_kind": row.failure_kind,
        "age_s": (now - row.created_at) / SECOND,
    }


def looks(
    rules: Iterable[Rule],
    facts: dict[str, Any],
    trigger: Trigger,
    queue_id: int,
    now: int,
    *,
    moved: bool = False,
) -> list[RuleMatch]:
    """Rules in their order up to the first that matches, which is then the last of these.

    A message that was moved meets only rules that name its new queue: those for all queues it has met.
    """
    found = []
    sources = (queue_id,) if moved else (None, queue_id)
    for rule in rules:
        if rule.trigger is not trigger or rule.source not in sources or not rule.stands(now):
            continue
        look = considered(rule, facts)
        found.append(look)
        if look.matched:
            break
    return found


def considered(rule: Rule, facts: dict[str, Any]) -> RuleMatch:
    """What cannot be judged does not match: it must not refuse the change that brought the message here."""
    if rule.expression is not None or any(condition.op == "matches" for condition in rule.conditions):
        # Before the time is taken: that it takes long is not the rule's fault.
        expressions.load()
    # The time this thread works: a busy machine is not the rule's fault either.
    started = time.thread_time()
    try:
        matched, why = _judged(rule, facts)
    except Exception as error:
        log.exception("the rule %s could not be tried", rule.id)
        matched, why = False, f"it could not be tried ({type(error).__name__})"
    return RuleMatch(rule, matched, why, time.thread_time() - started)


def _judged(rule: Rule, facts: dict[str, Any]) -> tuple[bool, str]:
    if rule.conditions:
        held = [conditions.holds(condition, facts) for condition in rule.conditions]
        if not (all(held) if rule.match == "all" else any(held)):
            missed = rule.conditions[held.index(False)]
            return False, f"{missed.field} {missed.op} {jsontext.text(missed.value)} does not hold"
    if rule.expression is not None:
        try:
            if not expressions.compiled(rule.expression).holds(facts):
                return False, "the expression does not hold"
        except TooMuch:
            return False, "the message is too large for an expression that loops"
    return True, "everything holds"
