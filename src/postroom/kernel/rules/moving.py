"""Moving a waiting message to another queue: it keeps its id and age, and takes its place there."""

from typing import Any

from postroom.errors import QueueClosed, QueueFull, SchemaNotFound, ScopeClosed
from postroom.kernel import checks, jsontext
from postroom.kernel.desk import Desk
from postroom.kernel.model import ConsumerMode, PlaceState, Queue
from postroom.kernel.rows import Content, Row
from postroom.kernel.rules.moves import MARK, moved_key
from postroom.kernel.states import Change, State


def check_takes(desk: Desk, queue: Queue) -> None:
    """Whether a queue takes a message now."""
    scope = desk.tx.scope_by_id(queue.scope_id)
    if scope.state is not PlaceState.ACTIVE:
        raise ScopeClosed(scope=scope.slug, state=scope.state)
    if queue.state is not PlaceState.ACTIVE:
        raise QueueClosed(queue=queue.path, state=queue.state)
    limit = queue.settings.max_depth
    depth = desk.tx.counts(queue.id).waiting
    if limit is not None and depth >= limit:
        raise QueueFull(queue=queue.path, depth=depth, limit=limit)


def check_schema(desk: Desk, content: Content, queue: Queue) -> None:
    """Whether the body is as the queue wants it."""
    if queue.settings.schema is None:
        return
    name, version = checks.split_schema(queue.settings.schema)
    schema = desk.tx.schema(queue.scope_id, name, version)
    if schema is None:
        raise SchemaNotFound(scope=queue.scope, name=name, version=version or "any")
    is_json = content.content_type == checks.JSON
    desk.kit.validators.check(schema, jsontext.decode_any(content.body) if is_json else None)


def move_to(desk: Desk, row: Row, target: Queue, *, cause: dict[str, Any]) -> None:
    from postroom.kernel.verbs.dead_letters import broadcast_anew

    source = desk.tx.queue_by_id(row.queue_id)
    check_takes(desk, target)
    check_schema(desk, desk.tx.content(row), target)
    key = row.idempotency_key
    if key is not None:
        if MARK not in key:
            desk.tx.keep_key(source.id, key, row.id)
        row.idempotency_key = moved_key(source.id, key)
    desk.tally(row, source, -1)
    row.queue_id = row.line = target.id
    row.scope_id = target.scope_id
    row.hop += 1
    desk.tally(row, target, 1)
    desk.reorder(row, target, entered_at=row.created_at)
    desk.move(row, Change.ROUTED, State(row.state), **{"from": source.path, "hop": row.hop}, **cause)
    desk.tx.reroute(row)
    if target.settings.consumer_mode is ConsumerMode.BROADCAST:
        broadcast_anew(desk, row, target)
        if row.state == State.DELAYED:
            # The deliveries wait, if they must; the original is only the sum of them.
            desk.move(row, Change.READY, State.PENDING)
            desk.tx.save([row])
