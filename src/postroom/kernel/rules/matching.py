"""Which rule a message meets first, and why the others did not match."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from postroom.clock import SECOND
from postroom.kernel import checks, expressions, jsontext
from postroom.kernel.costly_checks import MOST_NS, RULE_S, CheckAnswer, CostlyCheck
from postroom.kernel.expressions import TooMuch
from postroom.kernel.rows import Content, Row
from postroom.kernel.rules import conditions
from postroom.kernel.rules.rule import Rule, Trigger, written

log = logging.getLogger("postroom.rules")

SLOW_S = RULE_S


class RuleMatch(msgspec.Struct, frozen=True):
    """What one rule said to a message."""

    rule: Rule
    matched: bool
    why: str
    seconds: float
    undecided: bool = False
    """It could not be tried on this message, or not in time."""

    @property
    def decides(self) -> bool:
        """Whether no other rule is asked: it matched, or a person must be asked and nobody knows."""
        return self.matched or (self.undecided and self.rule.asks_first)


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
    consider: Callable[[Rule, dict[str, Any]], RuleMatch] | None = None,
) -> list[RuleMatch]:
    """Rules in their order up to the first that matches, which is then the last of these.

    A message that was moved meets only rules that name its new queue: those for all queues it has met.
    """
    found = []
    sources = (queue_id,) if moved else (None, queue_id)
    for rule in rules:
        if rule.trigger is not trigger or rule.source not in sources or not rule.stands(now):
            continue
        look = (consider or considered)(rule, facts)
        found.append(look)
        if look.decides:
            break
    return found


def fact_sizes(row: Row, content: Content) -> dict[str, int]:
    """How many bytes the facts have that may be large."""
    return {
        "body": len(content.body or b""),
        "labels": len(content.labels or ""),
        "result": len(row.result or b""),
        "failure_reason": len(row.failure_reason or ""),
    }


def is_costly(rule: Rule, sizes: Mapping[str, int]) -> bool:
    """Whether it might take longer than others may wait."""
    cost = 0.0
    for condition in rule.conditions:
        if condition.op == "matches":
            size = sizes.get(condition.field.partition(".")[0], expressions.SMALL_FACT)
            cost += expressions.estimate_match_ns(str(condition.value), size)
    if rule.expression is not None and cost <= MOST_NS:
        try:
            cost += expressions.compiled(rule.expression).estimate_ns(sizes)
        except Exception:
            return False  # what cannot be read cannot be tried either
    return cost > MOST_NS


def costly_check(rule: Rule, facts: dict[str, Any]) -> CostlyCheck:
    """The id of a new message and its age are another with each try, and count as they were at the first."""
    same = {name: value for name, value in facts.items() if name not in ("id", "age_s")}
    if facts.get("correlation_id") == facts.get("id"):
        del same["correlation_id"]
    tried = msgspec.structs.replace(rule, tripped_until=None, tripped_why=None)
    return CostlyCheck("rule", jsontext.encode(written(tried)), jsontext.encode(facts), jsontext.encode(same))


def answered(rule: Rule, answer: CheckAnswer | None) -> RuleMatch:
    if answer is None:
        return RuleMatch(rule, False, "it is tried elsewhere first", 0.0)
    if not answer.in_time:
        why = f"it took more than {RULE_S} s to look at the message"
        return RuleMatch(rule, False, why, answer.seconds, undecided=True)
    return RuleMatch(rule, answer.matched, answer.why, answer.seconds, answer.undecided)


def considered(rule: Rule, facts: dict[str, Any]) -> RuleMatch:
    """What cannot be judged does not match: it must not refuse the change that brought the message here."""
    if rule.expression is not None or any(condition.op == "matches" for condition in rule.conditions):
        # Before the time is taken: that it takes long is not the rule's fault.
        expressions.load()
    # The time this thread works: a busy machine is not the rule's fault either.
    started, undecided = time.thread_time(), True
    try:
        matched, why = _judged(rule, facts)
        undecided = False
    except TooMuch:
        matched, why = False, "the message is too large for an expression that loops"
    except Exception as error:
        log.exception("the rule %s could not be tried", rule.id)
        matched, why = False, f"it could not be tried ({type(error).__name__})"
    return RuleMatch(rule, matched, why, time.thread_time() - started, undecided)


def _judged(rule: Rule, facts: dict[str, Any]) -> tuple[bool, str]:
    if rule.conditions:
        held = [conditions.holds(condition, facts) for condition in rule.conditions]
        if not (all(held) if rule.match == "all" else any(held)):
            missed = rule.conditions[held.index(False)]
            return False, f"{missed.field} {missed.op} {jsontext.text(missed.value)} does not hold"
    if rule.expression is not None and not expressions.compiled(rule.expression).holds(facts):
        return False, "the expression does not hold"
    return True, "everything holds"
