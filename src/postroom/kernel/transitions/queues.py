"""Scopes and queues: made, changed, paused, drained, archived, deleted."""

import msgspec

from postroom.errors import InvalidField, NotEmpty, SchemaNotFound, SlugTaken, SystemQueue, WrongPlaceState
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.model import (
    EVENTS_QUEUE,
    SYSTEM_QUEUES,
    ConsumerMode,
    LifecycleState,
    Queue,
    QueueSettings,
    Scope,
)
from postroom.kernel.ports import RowFilter
from postroom.kernel.rows import Row
from postroom.kernel.states import TERMINAL, State
from postroom.kernel.transitions import priorities
from postroom.kernel.transitions.context import OPEN_STATES, TransitionContext
from postroom.kernel.transitions.subscriptions import drop_subscription

# Which state a scope or queue may be put into from which.
LIFECYCLE: dict[LifecycleState, frozenset[LifecycleState]] = {
    LifecycleState.ACTIVE: frozenset(
        {LifecycleState.PAUSED, LifecycleState.DRAINING, LifecycleState.ARCHIVED}
    ),
    LifecycleState.PAUSED: frozenset(
        {LifecycleState.ACTIVE, LifecycleState.DRAINING, LifecycleState.ARCHIVED}
    ),
    LifecycleState.DRAINING: frozenset(
        {LifecycleState.ACTIVE, LifecycleState.PAUSED, LifecycleState.ARCHIVED}
    ),
    LifecycleState.ARCHIVED: frozenset({LifecycleState.ACTIVE}),
}
REORDER_STEP = 1000


class QueueSchemaNotFound(SchemaNotFound):
    """The queue {queue} cannot ask for the schema "{schema}", which the scope "{scope}" does not have.
    Register it first: `postroom schema add {name} FILE --scope {scope}`, or `register_schema`.
    """


def create_scope(ctx: TransitionContext, command: c.CreateScope) -> Scope:
    checks.check_scope_slug(command.slug)
    checks.check_text("display_name", command.display_name, ctx.limits)
    checks.check_text("description", command.description, ctx.limits)
    known = ctx.session.scope(ctx.tenant, command.slug)
    if known is not None:
        if command.exist_ok:
            return known
        raise SlugTaken(kind="scope", slug=command.slug)
    scope = Scope(
        id=0,
        tenant=ctx.tenant,
        slug=command.slug,
        display_name=command.display_name or command.slug,
        description=command.description,
        state=LifecycleState.ACTIVE,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    scope = ctx.session.save_scope(scope)
    ctx.emit("scope.created", scope=scope.slug, data={"display_name": scope.display_name})
    for slug in SYSTEM_QUEUES:
        mode = ConsumerMode.BROADCAST if slug == EVENTS_QUEUE else ConsumerMode.COMPETING
        _insert_queue(ctx, scope, slug, QueueSettings(display_name=slug, consumer_mode=mode), system=True)
    return scope


def update_scope(ctx: TransitionContext, command: c.UpdateScope) -> Scope:
    checks.check_text("display_name", command.display_name, ctx.limits)
    checks.check_text("description", command.description, ctx.limits)
    scope = ctx.scope(command.slug)
    changes = {
        field: value
        for field in ("display_name", "description")
        if (value := getattr(command, field)) is not None
    }
    scope = msgspec.structs.replace(scope, updated_at=ctx.now, **changes)
    ctx.session.save_scope(scope)
    ctx.emit("scope.updated", scope=scope.slug, data=changes)
    return scope


def set_scope_state(ctx: TransitionContext, command: c.SetScopeState) -> Scope:
    scope = ctx.scope(command.slug)
    if scope.state is command.state:
        return scope
    if command.state not in LIFECYCLE[scope.state]:
        raise WrongPlaceState(kind="scope", slug=scope.slug, state=scope.state, wanted=command.state)
    before = scope.state
    scope = msgspec.structs.replace(scope, state=command.state, updated_at=ctx.now)
    ctx.session.save_scope(scope)
    ctx.emit("scope.state", scope=scope.slug, data={"from": before, "to": scope.state})
    for queue in ctx.session.queues_of(scope.id):
        _wake(ctx, queue)
    return scope


def delete_scope(ctx: TransitionContext, command: c.DeleteScope) -> None:
    """Only without open messages and dead letters; what has ended is archived first, not lost."""
    scope = ctx.scope(command.slug)
    queues = ctx.session.queues_of(scope.id)
    for queue in queues:
        _refuse_open(ctx, queue, "scope", scope.slug)
    for queue in queues:
        _remove(ctx, queue)
    ctx.session.save_scope(scope, deleted=True)
    ctx.emit("scope.deleted", scope=scope.slug, data={})


def create_queue(ctx: TransitionContext, command: c.CreateQueue) -> Queue:
    scope_slug, slug = checks.split_path(command.queue)
    if slug in SYSTEM_QUEUES or slug.startswith("_"):
        raise SystemQueue(queue=command.queue, verb="made by hand")
    checks.check_queue_slug(slug)
    scope = ctx.scope(scope_slug)
    settings = checks.queue_settings({"display_name": slug, **command.settings}, ctx.limits)
    known = ctx.session.queue(ctx.tenant, scope_slug, slug)
    if known is not None:
        if command.exist_ok:
            return known
        raise SlugTaken(kind="queue", slug=command.queue)
    if command.at_most is not None and len(ctx.session.queues_of(scope.id)) >= command.at_most:
        raise InvalidField("slug", f"is one too many: a scope has at most {command.at_most} queues")
    _check_schema(ctx, scope.id, f"{scope_slug}/{slug}", settings)
    return _insert_queue(ctx, scope, slug, settings, system=False)


def _check_schema(ctx: TransitionContext, scope_id: int, path: str, settings: QueueSettings) -> None:
    """A queue that asks for a schema nobody registered would refuse every body."""
    if settings.schema is None:
        return
    name, version = checks.split_schema(settings.schema)
    if ctx.session.schema(scope_id, name, version) is None:
        scope = ctx.session.scope_by_id(scope_id).slug
        raise QueueSchemaNotFound(queue=path, schema=settings.schema, scope=scope, name=name, version=version)


def _insert_queue(
    ctx: TransitionContext, scope: Scope, slug: str, settings: QueueSettings, *, system: bool
) -> Queue:
    queue = Queue(
        id=0,
        scope_id=scope.id,
        tenant=scope.tenant,
        scope=scope.slug,
        slug=slug,
        state=LifecycleState.ACTIVE,
        system=system,
        settings=settings,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    queue = ctx.session.save_queue(queue)
    ctx.emit(
        "queue.created",
        scope=scope.slug,
        queue=slug,
        data={"ordering": settings.ordering, "consumer_mode": settings.consumer_mode},
    )
    return queue


def update_queue(ctx: TransitionContext, command: c.UpdateQueue) -> Queue:
    """A new ordering gives every open message its new place in the same transaction."""
    queue = ctx.queue(command.queue)
    before = queue.settings
    settings = checks.queue_settings(command.settings, ctx.limits, before)
    if settings.consumer_mode is not before.consumer_mode:
        if queue.system:
            raise SystemQueue(queue=queue.path, verb="given another consumer mode")
        _refuse_open(ctx, queue, "queue", queue.path)
    if settings.schema != before.schema:
        _check_schema(ctx, queue.scope_id, queue.path, settings)
    queue = msgspec.structs.replace(queue, settings=settings, updated_at=ctx.now)
    ctx.session.save_queue(queue)
    ctx.emit("queue.updated", scope=queue.scope, queue=queue.slug, data=dict(command.settings))
    if settings.ordering is not before.ordering:
        after, wanted = 0, RowFilter(queue_ids=(queue.id,), states=OPEN_STATES)
        while rows := ctx.session.find(wanted, after=after, limit=REORDER_STEP):
            for row in rows:
                priorities.reposition(ctx, row, queue, anew=True)
            after = rows[-1].seq
    _wake(ctx, queue)
    return queue


def set_queue_state(ctx: TransitionContext, command: c.SetQueueState) -> Queue:
    queue = ctx.queue(command.queue)
    if queue.state is command.state:
        return queue
    if queue.system:
        raise SystemQueue(queue=queue.path, verb=f"changed to {command.state}")
    if command.state not in LIFECYCLE[queue.state]:
        raise WrongPlaceState(kind="queue", slug=queue.path, state=queue.state, wanted=command.state)
    before = queue.state
    queue = msgspec.structs.replace(queue, state=command.state, updated_at=ctx.now)
    ctx.session.save_queue(queue)
    ctx.emit("queue.state", scope=queue.scope, queue=queue.slug, data={"from": before, "to": queue.state})
    _wake(ctx, queue)
    return queue


def delete_queue(ctx: TransitionContext, command: c.DeleteQueue) -> None:
    """Only without open messages; what has ended is archived first, not lost."""
    queue = ctx.queue(command.queue)
    if queue.system:
        raise SystemQueue(queue=queue.path, verb="deleted")
    _refuse_open(ctx, queue, "queue", queue.path)
    _remove(ctx, queue)


def _refuse_open(ctx: TransitionContext, queue: Queue, kind: str, slug: str) -> None:
    counts = ctx.session.counts(queue.id)
    held = counts.open + (counts.dead if kind == "scope" else 0)
    if kind == "queue":
        held += _count_dead_from(ctx, queue)
    for subscription in ctx.session.subscriptions(queue.id):
        held += ctx.session.counts(queue.id, subscription.id).open
    if held:
        raise NotEmpty(kind=kind, slug=slug, count=held)


def _count_dead_from(ctx: TransitionContext, queue: Queue) -> int:
    """How many dead letters came from this queue."""
    home = ctx.dead_letters(queue.tenant, queue.scope)
    wanted = RowFilter(queue_ids=(home.id,), origin_queue_id=queue.id, states=(State.DEAD,))
    count = after = 0
    while rows := ctx.session.find(wanted, after=after, limit=REORDER_STEP):
        count += len(rows)
        after = rows[-1].seq
    return count


def archive_rows(ctx: TransitionContext, rows: list[Row]) -> None:
    for row in rows:
        ctx.tally(row, ctx.session.queue_by_id(row.queue_id), -1)
    ctx.session.direct.archive(rows)
    ctx.session.forget_rows(rows)


def _remove(ctx: TransitionContext, queue: Queue) -> None:
    for subscription in ctx.session.subscriptions(queue.id):
        drop_subscription(ctx, subscription)
    wanted = RowFilter(queue_ids=(queue.id,), states=tuple(sorted(TERMINAL)))
    while rows := ctx.session.find(wanted, limit=REORDER_STEP):
        archive_rows(ctx, rows)
    ctx.session.save_queue(queue, deleted=True)
    ctx.emit("queue.deleted", scope=queue.scope, queue=queue.slug, data={})


def _wake(ctx: TransitionContext, queue: Queue) -> None:
    """Consumers who found nothing may find something now."""
    ctx.woken[queue.id] += ctx.session.counts(queue.id).pending
    for subscription in ctx.session.subscriptions(queue.id):
        ctx.woken[-subscription.id] += ctx.session.counts(queue.id, subscription.id).pending
