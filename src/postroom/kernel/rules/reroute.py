"""Moving a waiting message to another queue: it keeps its id and age, and takes its place there."""

from typing import Any

from postroom.errors import QueueClosed, QueueFull, SchemaNotFound, ScopeClosed
from postroom.kernel import checks, jsontext
from postroom.kernel.model import ConsumerMode, LifecycleState, Queue
from postroom.kernel.rows import Content, Row
from postroom.kernel.rules.moved_keys import MARK, moved_key
from postroom.kernel.states import Change, State
from postroom.kernel.transitions.context import TransitionContext


def check_takes(ctx: TransitionContext, queue: Queue) -> None:
    """Whether a queue takes a message now."""
    scope = ctx.tx.scope_by_id(queue.scope_id)
    if scope.state is not LifecycleState.ACTIVE:
        raise ScopeClosed(scope=scope.slug, state=scope.state)
    if queue.state is not LifecycleState.ACTIVE:
        raise QueueClosed(queue=queue.path, state=queue.state)
    limit = queue.settings.max_depth
    depth = ctx.tx.counts(queue.id).waiting
    if limit is not None and depth >= limit:
        raise QueueFull(queue=queue.path, depth=depth, limit=limit)


def check_schema(ctx: TransitionContext, content: Content, queue: Queue) -> None:
    """Whether the body is as the queue wants it."""
    if queue.settings.schema is None:
        return
    name, version = checks.split_schema(queue.settings.schema)
    schema = ctx.tx.schema(queue.scope_id, name, version)
    if schema is None:
        raise SchemaNotFound(scope=queue.scope, name=name, version=version or "any")
    is_json = content.content_type == checks.JSON
    ctx.env.validators.check(schema, jsontext.decode_any(content.body) if is_json else None)


def move_to(ctx: TransitionContext, row: Row, target: Queue, *, cause: dict[str, Any]) -> None:
    from postroom.kernel.transitions.replay import broadcast_anew

    source = ctx.tx.queue_by_id(row.queue_id)
    check_takes(ctx, target)
    check_schema(ctx, ctx.tx.content(row), target)
    key = row.idempotency_key
    if key is not None:
        if MARK not in key:
            ctx.tx.keep_key(source.id, key, row.id)
        row.idempotency_key = moved_key(source.id, key)
    ctx.tally(row, source, -1)
    row.queue_id = row.line = target.id
    row.scope_id = target.scope_id
    row.hop += 1
    ctx.tally(row, target, 1)
    ctx.reorder(row, target, entered_at=row.created_at)
    ctx.move(row, Change.ROUTED, State(row.state), **{"from": source.path, "hop": row.hop}, **cause)
    ctx.tx.reroute(row)
    if target.settings.consumer_mode is ConsumerMode.BROADCAST:
        broadcast_anew(ctx, row, target)
        if row.state == State.DELAYED:
            # The deliveries wait, if they must; the original is only the sum of them.
            ctx.move(row, Change.READY, State.PENDING)
            ctx.tx.save([row])
