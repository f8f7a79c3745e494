"""Scopes, queues, messages and the rest as the service shows them, in the words its clients know."""

import base64
from typing import Any

import msgspec
from pydantic import BaseModel, Field

from postroom.clock import iso
from postroom.errors import InvalidField
from postroom.kernel import checks
from postroom.kernel.model import Counts, Queue, Scope
from postroom.kernel.moved_keys import shown_key
from postroom.kernel.rules.rule import Rule
from postroom.kernel.schedules.model import QueueSchedule
from postroom.kernel.states import State
from postroom.services.messages import FoundMessage
from postroom.services.patterns import ReviewPattern
from postroom.services.public_ids import PublicIds
from postroom.services.reviews import Review
from postroom.services.rules import RuleTrial
from postroom.services.schemas import ScopedSchema
from postroom.services.subscriptions import CountedSubscription

# A delayed message is one that waits and is not visible yet; a dead one was dead-lettered.
SHOWN_STATES = {State.DELAYED: "pending", State.DEAD: "dead_lettered"}
MEANT_STATES: dict[str, tuple[State, ...]] = {
    "pending": (State.PENDING, State.DELAYED),
    "dead_lettered": (State.DEAD,),
}
STATE_NAMES = sorted({SHOWN_STATES.get(each, str(each)) for each in State})


def when(moment: int | None) -> str | None:
    return None if moment is None else iso(moment)


class ScopeView(BaseModel):
    id: str
    tenant_id: str
    slug: str
    display_name: str
    description: str
    state: str
    created_at: str
    updated_at: str


def scope(found: Scope, ids: PublicIds) -> dict[str, Any]:
    return {
        "id": ids.scope(found.id),
        "tenant_id": found.tenant,
        "slug": found.slug,
        "display_name": found.display_name,
        "description": found.description,
        "state": found.state,
        "created_at": when(found.created_at),
        "updated_at": when(found.updated_at),
    }


class QueueView(BaseModel):
    id: str
    scope_id: str
    slug: str
    display_name: str
    description: str
    ordering: str
    consumer_mode: str
    visibility_timeout_s: float
    max_retries: int
    backoff_base_s: float
    backoff_cap_s: float
    concurrency: int | None
    rate_limit: int | None
    rate_period_s: float
    rate_key: str | None
    max_depth: int | None
    overflow_policy: str
    default_ttl_s: float | None
    retention_s: float | None
    schema_: str | None = Field(alias="schema")
    state: str
    system: bool
    depth_pending: int
    depth_claimed: int
    depth_dead: int
    created_at: str
    updated_at: str


def queue(found: Queue, counts: Counts, ids: PublicIds) -> dict[str, Any]:
    settings = found.settings
    return {
        "id": ids.queue(found.id),
        "scope_id": ids.scope(found.scope_id),
        "slug": found.slug,
        "display_name": settings.display_name,
        "description": settings.description,
        "ordering": settings.ordering,
        "consumer_mode": settings.consumer_mode,
        "visibility_timeout_s": settings.visibility_timeout_s,
        "max_retries": settings.max_retries,
        "backoff_base_s": settings.backoff_base_s,
        "backoff_cap_s": settings.backoff_cap_s,
        "concurrency": settings.concurrency,
        "rate_limit": settings.rate_limit,
        "rate_period_s": settings.rate_period_s,
        "rate_key": settings.rate_key,
        "max_depth": settings.max_depth,
        "overflow_policy": settings.overflow_policy,
        "default_ttl_s": settings.default_ttl_s,
        "schema": settings.schema,
        "retention_s": settings.retention_s,
        "state": found.state,
        "system": found.system,
        "depth_pending": counts.waiting,
        "depth_claimed": counts.claimed,
        "depth_dead": counts.dead,
        "created_at": when(found.created_at),
        "updated_at": when(found.updated_at),
    }


class MessageView(BaseModel):
    id: str
    tenant_id: str
    scope_id: str | None
    queue_id: str | None
    scope: str
    queue: str
    state: str
    message_type: str
    content_type: str
    body: Any
    body_encoding: str | None = None
    labels: dict[str, Any]
    priority_tier: str
    priority_score: int
    attempts: int
    correlation_id: str | None
    causation_id: str | None
    parent_id: str | None
    hops: int
    idempotency_key: str | None
    ttl_seconds: float | None
    deadline: str | None
    delay_until: str | None
    visible_at: str | None
    claim_token: str | None = None
    claimed_by_type: str | None
    claimed_by_id: str | None
    claimed_at: str | None
    claim_expires_at: str | None
    failure_reason: str | None
    result: Any
    hitl_spec: dict[str, Any] | None
    origin_queue: str | None
    subscription: str | None
    source_type: str
    source_id: str | None
    created_at: str
    completed_at: str | None
    archived: bool


def state(found: State) -> str:
    return SHOWN_STATES.get(found, str(found.value))


def meant_states(word: str | None) -> tuple[str, ...]:
    """The states that clients call by this word; all without one."""
    if word is None:
        return ()
    known = MEANT_STATES.get(word)
    if known is not None:
        return known
    if word not in STATE_NAMES:
        raise InvalidField("state", f"is {word!r}, must be one of {', '.join(STATE_NAMES)}")
    return (word,)


def message(of: FoundMessage, ids: PublicIds, *, token: bool = False) -> dict[str, Any]:
    found = of.message
    body, encoding = found.body, None
    if isinstance(body, bytes | bytearray):
        body, encoding = base64.b64encode(body).decode(), "base64"
    holder, _, _ = (found.claimed_by or "").partition("#")
    kind, _, name = holder.partition(":")
    shown: dict[str, Any] = {
        "id": found.id,
        "tenant_id": found.tenant,
        "scope_id": ids.scope(of.scope_id),
        "queue_id": ids.queue(of.queue_id),
        "scope": found.scope,
        "queue": found.queue,
        "state": state(found.state),
        "message_type": found.message_type,
        "content_type": found.content_type,
        "body": body,
        "labels": found.labels,
        "priority_tier": found.priority_tier,
        "priority_score": found.priority_score,
        "attempts": found.attempts,
        "correlation_id": found.correlation_id,
        "causation_id": found.causation_id,
        "parent_id": found.parent_id,
        "hops": found.hop,
        "idempotency_key": shown_key(found.idempotency_key),
        "ttl_seconds": found.ttl_s,
        "deadline": when(found.deadline),
        "delay_until": when(found.delay_until),
        "visible_at": when(found.visible_at),
        "claimed_by_type": kind if name else ("worker" if holder else None),
        "claimed_by_id": name or holder or None,
        "claimed_at": when(found.claimed_at),
        "claim_expires_at": when(found.claim_expires_at),
        "failure_reason": found.failure_reason,
        "result": found.result,
        "hitl_spec": found.hitl_spec,
        "origin_queue": found.origin_queue,
        "subscription": found.subscription,
        "source_type": found.source_type,
        "source_id": found.source_id,
        "created_at": when(found.created_at),
        "completed_at": when(found.finished_at),
        "archived": found.archived,
    }
    if encoding is not None:
        shown["body_encoding"] = encoding
    if token:
        shown["claim_token"] = found.claim_token
    return shown


def schema(of: ScopedSchema, ids: PublicIds) -> dict[str, Any]:
    found = of.schema
    return {
        "scope_id": ids.scope(of.scope_id),
        "name": found.name,
        "version": found.version,
        "schema": found.document,
        "created_at": when(found.created_at),
    }


def schedule(found: QueueSchedule) -> dict[str, Any]:
    told = msgspec.to_builtins(found)
    for name in ("at", "created_at", "updated_at", "next_at", "last_at"):
        told[name] = when(told[name])
    return told


def subscription(of: CountedSubscription, ids: PublicIds) -> dict[str, Any]:
    found, counts = of.subscription, of.counts
    return {
        "id": ids.subscription(found.id),
        "queue_id": ids.queue(found.queue_id),
        "queue": found.queue,
        "name": found.name,
        "progress": {
            "pending": counts.waiting,
            "claimed": counts.claimed,
            "completed": counts.completed,
            "ended_otherwise": counts.expired + counts.cancelled,
        },
        "created_at": when(found.created_at),
    }


def rule(found: Rule, scope_id: int, ids: PublicIds) -> dict[str, Any]:
    def queue_id(number: int | None) -> str | None:
        return None if number is None else ids.queue(number)

    action: dict[str, Any] = msgspec.to_builtins(found.action)
    target, targets = action.pop("target", None), action.pop("targets", None)
    if target is not None:
        action["target_queue_id"] = queue_id(target)
    if targets:
        action["target_queue_ids"] = [queue_id(each) for each in targets]
    return {
        "id": found.id,
        "scope_id": ids.scope(scope_id),
        "name": found.name,
        "enabled": found.enabled,
        "priority": found.priority,
        "source_queue_id": queue_id(found.source),
        "trigger": found.trigger,
        "conditions": [msgspec.to_builtins(each) for each in found.conditions],
        "match": found.match,
        "expression": found.expression,
        "action": action,
        "tripped_until": when(found.tripped_until),
        "tripped_why": found.tripped_why,
        "created_at": when(found.created_at),
        "updated_at": when(found.updated_at),
    }


def rule_trial(tried: RuleTrial, ids: PublicIds) -> dict[str, Any]:
    results = [
        {
            "message_id": each.message_id,
            "matched": each.matched is not None,
            "rule": rule(each.matched.rule, tried.scope_id, ids) if each.matched else None,
            "looks": [
                {
                    "rule_id": look.rule.id,
                    "name": look.rule.name,
                    "matched": look.matched,
                    "why": look.why,
                }
                for look in each.looks
            ],
        }
        for each in tried.results
    ]
    matched = sum(each.matched is not None for each in tried.results)
    return {"trigger": tried.trigger, "matched": matched, "results": results}


def body_from(content_type: str, body: Any) -> Any:
    """What came as JSON as the kernel takes it: opaque bytes come as base64."""
    if content_type == checks.JSON or content_type.startswith("text/") or body is None:
        return body
    return base64.b64decode(body, validate=True)


def pattern(found: ReviewPattern, ids: PublicIds) -> dict[str, Any]:
    return {
        "id": found.id,
        "scope_id": ids.scope(found.scope_id),
        "name": found.name,
        "version": found.version,
        "spec": found.spec,
        "parameters": found.parameters,
        "created_at": when(found.created_at),
    }


def review(found: Review, ids: PublicIds) -> dict[str, Any]:
    return {
        **message(found.found, ids),
        "seen": found.seen,
        "due_at": when(found.due_at),
        "assignee": found.assignee,
        "escalated": found.is_escalated,
    }


def decision(found: Review) -> dict[str, Any] | None:
    return None if found.decided is None else {**found.decided, "at": when(found.decided.get("at"))}
