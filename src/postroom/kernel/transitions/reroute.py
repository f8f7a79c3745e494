"""Moving a waiting message to another queue: it keeps its id and age, and takes its place there."""

from typing import Any

from postroom.errors import QueueFull
from postroom.kernel import checks
from postroom.kernel.facts import MOVED_KEY
from postroom.kernel.model import ConsumerMode, Queue
from postroom.kernel.moved_keys import MARK, moved_key
from postroom.kernel.ports import Shape
from postroom.kernel.rows import Content, Row
from postroom.kernel.states import Change, State
from postroom.kernel.transitions.context import TransitionContext
from postroom.kernel.transitions.publish import check_active, find_schema
from postroom.kernel.transitions.replay import broadcast_anew


def check_takes(ctx: TransitionContext, queue: Queue) -> None:
    """Whether a queue takes a message now."""
    check_active(ctx, queue)
    limit = queue.settings.max_depth
    if limit is not None:
        depth = ctx.session.counts(queue.id).waiting
        if depth >= limit:
            raise QueueFull(queue=queue.path, depth=depth, limit=limit)


def check_schema(ctx: TransitionContext, content: Content, queue: Queue) -> None:
    """Whether the body is as the queue wants it."""
    schema = find_schema(ctx, queue)
    if schema is not None:
        body = content.body if content.content_type == checks.JSON else None
        ctx.env.validators.check(schema, body, ctx.checks)


def move_to(ctx: TransitionContext, row: Row, target: Queue, *, cause: dict[str, Any]) -> None:
    source = ctx.session.queue_by_id(row.queue_id)
    check_takes(ctx, target)
    check_schema(ctx, ctx.session.content(row), target)
    key = row.idempotency_key
    if key is not None:
        row.idempotency_key = moved_key(source.id, key)
        if MARK not in key:
            ctx.session.remember(MOVED_KEY, row.idempotency_key, row.id, ctx.now)
    ctx.tally(row, source, -1)
    row.queue_id = row.line = target.id
    row.scope_id = target.scope_id
    row.hop += 1
    ctx.tally(row, target, 1)
    ctx.reorder(row, target, entered_at=row.created_at)
    details = {"from": source.path, "hop": row.hop, **cause}
    ctx.move(row, Change.ROUTED, State(row.state), shape=Shape.MOVED, **details)
    if target.settings.consumer_mode is ConsumerMode.BROADCAST:
        broadcast_anew(ctx, row, target)
        if row.state == State.DELAYED:
            # The deliveries wait, if they must; the original is only the sum of them.
            ctx.move(row, Change.READY, State.PENDING)
