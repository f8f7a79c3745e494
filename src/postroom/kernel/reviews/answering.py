"""A review is answered: once, in time, and whatever waited for it goes on in the same transaction."""

import hashlib
from typing import Any

import msgspec

from postroom.clock import iso, micros
from postroom.errors import Conflict, InvalidField, QueueNotFound, WrongState
from postroom.kernel import checks, jsontext, service_commands
from postroom.kernel.access import trust
from postroom.kernel.digests import RECORD_DIGEST, record_digest
from postroom.kernel.model import NewMessage, Queue
from postroom.kernel.reviews.answers import check_answer
from postroom.kernel.reviews.sections import HitlInvalid
from postroom.kernel.reviews.spec import decision_field, is_sound
from postroom.kernel.rows import Content, Row
from postroom.kernel.states import Change, State
from postroom.kernel.transitions.context import TransitionContext
from postroom.kernel.transitions.publish import publish_one
from postroom.kernel.transitions.reroute import move_to

RECORD = "review"
TIMEOUT = "timeout"
# How long a message is held back for its review, which is never so long.
HOLD_S = 366 * 24 * 3600


class ReviewAnswered(Conflict):
    """The review {message_id} was answered already: {decision}, on {at}. Nothing was changed."""

    code = "REVIEW_ANSWERED"


class ReviewLate(Conflict):
    """The time for the review {message_id} was over on {at}. Nothing was changed."""

    code = "REVIEW_LATE"


class ReviewTaken(Conflict):
    """The review {message_id} is being answered by {holder} at the moment."""

    code = "REVIEW_TAKEN"


class ReviewChanged(Conflict):
    """The review {message_id} is no longer what you were shown. Read it again before you decide."""

    code = "REVIEW_CHANGED"


def seen_mark(content: Content) -> str:
    """Stands for exactly what a reviewer is shown: the spec and the body."""
    shown = (content.hitl_spec or "").encode() + b"\x00" + (content.body or b"")
    return hashlib.sha256(shown).hexdigest()[:32]


def answer(ctx: TransitionContext, command: service_commands.AnswerReview) -> None:
    row = ctx.message(command.message_id)
    if row is None:
        archived = ctx.session.archived(command.message_id)
        assert archived is not None, "it is there or in the archive"
        _refuse_ended(archived.row, archived.content)
        raise WrongState(message_id=command.message_id, state="archived", verb="answered")
    content = ctx.session.content(row)
    spec = spec_of(row, content)
    _refuse_ended(row, content)
    if row.state == State.CLAIMED and command.token != row.token and row.claimed_by != ctx.actor:
        raise ReviewTaken(message_id=row.id, holder=row.claimed_by)
    if command.token is not None and (row.state != State.CLAIMED or row.token != command.token):
        raise WrongState(message_id=row.id, state=row.state, verb="answered with this claim")
    if row.state not in (State.PENDING, State.CLAIMED):
        raise WrongState(message_id=row.id, state=row.state, verb="answered yet")
    if row.expires_at is not None and row.expires_at <= ctx.now:
        raise ReviewLate(message_id=row.id, at=iso(row.expires_at))
    mark = seen_mark(content)
    if command.seen is not None and command.seen != mark:
        raise ReviewChanged(message_id=row.id)
    check_answer(spec, command.answer)
    # Where it leads may be full or closed: then it is not answered either.
    with ctx.savepoint():
        decide(ctx, row.id, content, spec, command.answer, by=command.reviewer or ctx.actor)


def is_review(content: Content) -> bool:
    """Whether it asks a person in our way; what others understand by a review is their business."""
    return content.hitl_spec is not None and is_sound(jsontext.decode_any(content.hitl_spec))


def spec_of(row: Row, content: Content) -> dict[str, Any]:
    spec = jsontext.decode_any(content.hitl_spec)
    if not is_sound(spec):
        raise HitlInvalid(problem=f"message {row.id} is no review")
    return spec


def _refuse_ended(row: Row, content: Content) -> None:
    spec = spec_of(row, content)
    if row.state == State.COMPLETED:
        result = jsontext.decode_any(row.result)
        decided = result.get(decision_field(spec)) if isinstance(result, dict) else result
        raise ReviewAnswered(message_id=row.id, decision=decided, at=iso(row.finished_at or row.updated_at))
    if row.state == State.EXPIRED:
        raise ReviewLate(message_id=row.id, at=iso(row.finished_at or row.updated_at))


def decide(
    ctx: TransitionContext,
    message_id: str,
    content: Content,
    spec: dict[str, Any],
    values: dict[str, Any],
    *,
    by: str,
) -> None:
    """Complete the review and let go on what waited. `by` is a person, or the time that ran out."""
    row = ctx.session.row(message_id)
    assert row is not None, "only a live review is decided"
    decision = values[decision_field(spec)]
    row.result = jsontext.encode_strict(values, "result")
    number, digest = _remember(ctx, row, content, spec, values, by)
    record = {"record": number, RECORD_DIGEST: digest}
    ctx.move(row, Change.COMPLETED, State.COMPLETED, decision=decision, by=by, **record)
    ctx.end_delivery(row)
    step = (spec.get("on_decision") or {}).get(decision)
    waiting = held_back(ctx, row, spec)
    if waiting is not None:
        go_on(ctx, waiting, decision, step)
    elif step is not None and not step.get("archive"):
        _follow(ctx, row, content, values, decision, step)


def _remember(
    ctx: TransitionContext, row: Row, content: Content, spec: dict[str, Any], values: dict[str, Any], by: str
) -> tuple[int, str]:
    """Who decided what, when, and seeing what: the record's number, and its digest."""
    data = {
        "answer": values,
        "by": by,
        "at": ctx.now,
        "seen": seen_mark(content),
        "pattern": spec.get("pattern"),
        "version": spec.get("version"),
        "escalated": bool(spec.get("escalated")),
    }
    about = {"correlation_id": row.correlation_id, "message_id": row.id}
    text = jsontext.text(data)
    number = ctx.session.add_record(row.tenant, RECORD, row.id, text, ctx.now, **about)
    return number, record_digest(number, text)


def held_back(ctx: TransitionContext, row: Row, spec: dict[str, Any]) -> Row | None:
    """The message that waits for this review, if it still does.

    A spec may name any message, but only a rule makes a review the child of what it holds back, in the moment
    from which on it is held; what is delayed otherwise was taken out of the review's hands.
    """
    if not spec.get("waiting") or spec["waiting"] != row.parent_id:
        return None
    waiting = ctx.session.row(spec["waiting"])
    if waiting is None or waiting.tenant != row.tenant or waiting.state != State.DELAYED:
        return None
    return waiting if waiting.visible_at == row.created_at + micros(HOLD_S) else None


def go_on(ctx: TransitionContext, waiting: Row, decision: str, step: dict[str, Any] | None) -> None:
    """The message that waited for the decision carries it as a label from now on."""
    content = ctx.session.content(waiting)
    labels = {**jsontext.decode_any(content.labels, {}), "review_decision": decision}
    content = msgspec.structs.replace(content, labels=jsontext.text(labels))
    ctx.rewrite(waiting, content)
    waiting.visible_at = None
    if step is not None and step.get("archive"):
        ctx.cancel(waiting, f"archived: the review said {decision}")
        return
    ctx.move(waiting, Change.READY, State.PENDING, decision=decision)
    if step is not None:
        target = next_queue(ctx, waiting, step["queue"])
        if target.id != waiting.queue_id:
            move_to(ctx, waiting, target, cause={"decision": decision})


def next_queue(ctx: TransitionContext, row: Row, name: str) -> Queue:
    """Where a decision leads: of the same scope by its slug; by `/scope/queue` into one that trusts it."""
    scope = ctx.session.scope_by_id(row.scope_id).slug
    path = name[1:] if name.startswith("/") else f"{scope}/{name}"
    queue = ctx.session.queue(row.tenant, *checks.split_path(path))
    if queue is None:
        raise QueueNotFound(queue=path)
    if not trust.may_cross(ctx.session, row.tenant, row.scope_id, queue.scope_id, "route"):
        raise InvalidField("queue", f"no trust lets this scope route into {queue.scope}")
    return queue


def _follow(
    ctx: TransitionContext,
    row: Row,
    content: Content,
    values: dict[str, Any],
    decision: str,
    step: dict[str, Any],
) -> None:
    """What the decision asks for next: the same content to another queue, with the answer as labels."""
    body: Any = content.body
    if content.content_type == checks.JSON:
        body = jsontext.decode_any(content.body)
    labels = {**jsontext.decode_any(content.labels, {}), "review_decision": decision}
    message = NewMessage(
        body=body,
        content_type=content.content_type,
        message_type=step.get("message_type") or row.message_type,
        labels=labels,
        priority_tier=row.priority_tier,
        priority_score=row.priority_score,
        correlation_id=row.correlation_id,
        causation_id=row.id,
        parent_id=row.id,
        hop=row.hop + 1,
        source_type="review",
        source_id=row.id,
        metadata={"review": {"answer": values, "message_id": row.id}},
    )
    publish_one(ctx, next_queue(ctx, row, step["queue"]), message)
