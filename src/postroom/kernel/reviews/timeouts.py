"""Nobody answered in time: the review goes to others, or takes its default, or ends."""

import logging
from typing import Any

import msgspec

from postroom.clock import micros
from postroom.errors import PostroomError
from postroom.kernel import jsontext
from postroom.kernel.model import INTEGRITY, NewMessage
from postroom.kernel.reviews.answering import TIMEOUT, decide, go_on, held_back, next_queue
from postroom.kernel.reviews.answers import is_answer
from postroom.kernel.reviews.spec import decision_field, is_sound
from postroom.kernel.rows import Content, Row
from postroom.kernel.states import Change, State
from postroom.kernel.transitions.context import TransitionContext
from postroom.kernel.transitions.publish import publish_one
from postroom.kernel.transitions.reroute import move_to

log = logging.getLogger("postroom.kernel.reviews")

KEEP_S = 30 * 24 * 3600


def time_out(ctx: TransitionContext, row: Row) -> bool:
    """Whether the end of its time was dealt with here; else the message simply expires."""
    # Whoever sweeps does so for all tenants; what follows is of this one alone.
    tenant, ctx.tenant = ctx.tenant, row.tenant
    try:
        return _deal_with(ctx, row)
    finally:
        ctx.tenant = tenant


def _deal_with(ctx: TransitionContext, row: Row) -> bool:
    content = ctx.session.content(row)
    if content.hitl_spec is None or row.subscription_id is not None:
        return False
    spec: dict[str, Any] = jsontext.decode(content.hitl_spec)
    if "sections" not in spec or not is_sound(spec):
        # Of another make: who published it knows what to do.
        return False
    if spec.get("escalation"):
        try:
            with ctx.savepoint():
                _escalate(ctx, row.id, content, spec)
            return True
        except PostroomError as error:
            # The queue it should go to is closed or gone: the default is better than nobody.
            ctx.emit("review.not_escalated", data={"message_id": row.id, "problem": str(error)[:200]})
    if spec.get("default") is not None:
        _take_default(ctx, row, content, spec)
        return True
    waiting = held_back(ctx, row, spec)
    if waiting is not None:
        ctx.bury(waiting, f"nobody answered the review {row.id} in time", "review_timeout")
    return False


def _take_default(ctx: TransitionContext, row: Row, content: Content, spec: dict[str, Any]) -> None:
    """Whatever is wrong with where it leads must not stop the sweep, which is for all. What waited and
    cannot go where the decision leads goes nowhere else: it is a dead letter."""
    try:
        with ctx.savepoint():
            decide(ctx, row.id, content, spec, spec["default"], by=TIMEOUT)
    except PostroomError as error:
        waiting = held_back(ctx, row, spec)
        _close(ctx, row, waiting, spec["default"][decision_field(spec)], error)
        decide(ctx, row.id, content, {**spec, "on_decision": None}, spec["default"], by=TIMEOUT)


def give_up(ctx: TransitionContext, row: Row, reason: str, answer: Any = None) -> None:
    """A review has ended otherwise, so nobody will answer it: what waited for it takes the default, or ends.

    `answer` is what a holder said who completed it like any other message; if it is one, it counts.
    """
    content = ctx.session.content(row)
    if content.hitl_spec is None or row.subscription_id is not None:
        return
    spec: dict[str, Any] = jsontext.decode(content.hitl_spec)
    waiting = held_back(ctx, row, spec) if is_sound(spec) else None
    if waiting is None:
        return
    values = answer if is_answer(spec, answer) else spec.get("default")
    if values is None:
        ctx.bury(waiting, f"the review {row.id} was given up: {reason}", "review_cancelled")
        return
    decision = values[decision_field(spec)]
    try:
        with ctx.savepoint():
            held = ctx.session.row(waiting.id)
            assert held is not None, "it waits"
            go_on(ctx, held, decision, (spec.get("on_decision") or {}).get(decision))
    except PostroomError as error:
        _close(ctx, row, waiting, decision, error)


def _close(
    ctx: TransitionContext, row: Row, waiting: Row | None, decision: str, error: PostroomError
) -> None:
    """A decision that cannot be followed: the ledger and `_integrity` say so, and nobody gets what waited."""
    problem = str(error)[:200]
    data = {"message_id": row.id, "decision": decision, "problem": problem}
    if waiting is not None:
        data["waiting"] = waiting.id
        waiting.visible_at = None
        ctx.bury(waiting, f"the review {row.id} said {decision}, but: {problem}", "review_not_followed")
    ctx.emit("review.not_followed", data=data)
    finding = NewMessage(
        body=data,
        message_type="review.not_followed",
        correlation_id=row.correlation_id,
        causation_id=row.id,
        ttl_s=KEEP_S,
        source_type="review",
        source_id=row.id,
    )
    scope = ctx.session.scope_by_id(row.scope_id).slug
    try:
        with ctx.savepoint():
            publish_one(ctx, ctx.queue(f"{scope}/{INTEGRITY}"), finding)
    except PostroomError as refusal:
        log.error("a finding about the review %s was not published: %s", row.id, refusal)


def _escalate(ctx: TransitionContext, message_id: str, content: Content, spec: dict[str, Any]) -> None:
    row = ctx.session.row(message_id)
    assert row is not None, "it was there a moment ago"
    escalation = spec["escalation"]
    seconds = escalation.get("timeout_s") or spec["timeout_s"]
    kept = {name: value for name, value in spec.items() if name != "escalation"}
    kept |= {"escalated": True, "timeout_s": seconds}
    if escalation.get("assignee"):
        kept["assignee"] = escalation["assignee"]
    content = msgspec.structs.replace(content, hitl_spec=jsontext.text(kept))
    ctx.rewrite(row, content)
    row.expires_at = ctx.now + micros(seconds)
    cause = {"escalated": True, "assignee": escalation.get("assignee")}
    if escalation.get("queue"):
        target = next_queue(ctx, row, escalation["queue"])
        if target.id != row.queue_id:
            move_to(ctx, row, target, cause=cause)
            return
    ctx.move(row, Change.TRANSFORMED, State(row.state), **cause)
