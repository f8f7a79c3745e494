"""Scopes and queues: made, changed, paused, drained, archived, deleted."""

import msgspec

from postroom.errors import NotEmpty, SchemaNotFound, SlugTaken, SystemQueue, WrongPlaceState
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.desk import Desk
from postroom.kernel.model import (
    SYSTEM_QUEUES,
    ConsumerMode,
    PlaceState,
    Queue,
    QueueSettings,
    Scope,
)
from postroom.kernel.verbs import priorities

# Which state a place may be put into from which.
PLACE_CHANGES: dict[PlaceState, frozenset[PlaceState]] = {
    PlaceState.ACTIVE: frozenset({PlaceState.PAUSED, PlaceState.DRAINING, PlaceState.ARCHIVED}),
    PlaceState.PAUSED: frozenset({PlaceState.ACTIVE, PlaceState.DRAINING, PlaceState.ARCHIVED}),
    PlaceState.DRAINING: frozenset({PlaceState.ACTIVE, PlaceState.PAUSED, PlaceState.ARCHIVED}),
    PlaceState.ARCHIVED: frozenset({PlaceState.ACTIVE}),
}
REORDER_STEP = 1000


class QueueSchemaNotFound(SchemaNotFound):
    """The queue {queue} cannot ask for the schema "{schema}", which the scope "{scope}" does not have.
    Register it first: `postroom schema add {name} FILE --scope {scope}`, or `register_schema`.
    """


def create_scope(desk: Desk, command: c.CreateScope) -> Scope:
    checks.check_scope_slug(command.slug)
    checks.check_text("display_name", command.display_name, desk.limits)
    checks.check_text("description", command.description, desk.limits)
    known = desk.tx.scope(desk.tenant, command.slug)
    if known is not None:
        if command.exist_ok:
            return known
        raise SlugTaken(kind="scope", slug=command.slug)
    scope = Scope(
        id=0,
        tenant=desk.tenant,
        slug=command.slug,
        display_name=command.display_name or command.slug,
        description=command.description,
        state=PlaceState.ACTIVE,
        created_at=desk.now,
        updated_at=desk.now,
    )
    scope = msgspec.structs.replace(scope, id=desk.tx.insert_scope(scope))
    desk.record("scope.created", scope=scope.slug, data={"display_name": scope.display_name})
    for slug in SYSTEM_QUEUES:
        mode = ConsumerMode.BROADCAST if slug == "_events" else ConsumerMode.COMPETING
        _insert_queue(desk, scope, slug, QueueSettings(display_name=slug, consumer_mode=mode), system=True)
    return scope


def update_scope(desk: Desk, command: c.UpdateScope) -> Scope:
    checks.check_text("display_name", command.display_name, desk.limits)
    checks.check_text("description", command.description, desk.limits)
    scope = desk.scope(command.slug)
    changes = {
        field: value
        for field in ("display_name", "description")
        if (value := getattr(command, field)) is not None
    }
    scope = msgspec.structs.replace(scope, updated_at=desk.now, **changes)
    desk.tx.update_scope(scope)
    desk.record("scope.updated", scope=scope.slug, data=changes)
    return scope


def set_scope_state(desk: Desk, command: c.SetScopeState) -> Scope:
    scope = desk.scope(command.slug)
    if scope.state is command.state:
        return scope
    if command.state not in PLACE_CHANGES[scope.state]:
        raise WrongPlaceState(kind="scope", slug=scope.slug, state=scope.state, wanted=command.state)
    before = scope.state
    scope = msgspec.structs.replace(scope, state=command.state, updated_at=desk.now)
    desk.tx.update_scope(scope)
    desk.record("scope.state", scope=scope.slug, data={"from": before, "to": scope.state})
    for queue in desk.tx.queues_of(scope.id):
        _wake(desk, queue)
    return scope


def delete_scope(desk: Desk, command: c.DeleteScope) -> None:
    """Only without open messages and dead letters; what has ended is archived first, not lost."""
    scope = desk.scope(command.slug)
    queues = desk.tx.queues_of(scope.id)
    for queue in queues:
        _refuse_open(desk, queue, "scope", scope.slug)
    for queue in queues:
        _remove(desk, queue)
    desk.tx.delete_scope(scope.id)
    desk.record("scope.deleted", scope=scope.slug, data={})


def create_queue(desk: Desk, command: c.CreateQueue) -> Queue:
    scope_slug, slug = checks.split_path(command.queue)
    if slug in SYSTEM_QUEUES or slug.startswith("_"):
        raise SystemQueue(queue=command.queue, verb="made by hand")
    checks.check_queue_slug(slug)
    scope = desk.scope(scope_slug)
    settings = checks.queue_settings({"display_name": slug, **command.settings}, desk.limits)
    known = desk.tx.queue(desk.tenant, scope_slug, slug)
    if known is not None:
        if command.exist_ok:
            return known
        raise SlugTaken(kind="queue", slug=command.queue)
    _check_schema(desk, scope.id, f"{scope_slug}/{slug}", settings)
    return _insert_queue(desk, scope, slug, settings, system=False)


def _check_schema(desk: Desk, scope_id: int, path: str, settings: QueueSettings) -> None:
    """A queue that asks for a schema nobody registered would refuse every body."""
    if settings.schema is None:
        return
    name, version = checks.split_schema(settings.schema)
    if desk.tx.schema(scope_id, name, version) is None:
        scope = desk.tx.scope_by_id(scope_id).slug
        raise QueueSchemaNotFound(queue=path, schema=settings.schema, scope=scope, name=name, version=version)


def _insert_queue(desk: Desk, scope: Scope, slug: str, settings: QueueSettings, *, system: bool) -> Queue:
    queue = Queue(
        id=0,
        scope_id=scope.id,
        tenant=scope.tenant,
        scope=scope.slug,
        slug=slug,
        state=PlaceState.ACTIVE,
        system=system,
        settings=settings,
        created_at=desk.now,
        updated_at=desk.now,
    )
    queue = msgspec.structs.replace(queue, id=desk.tx.insert_queue(queue))
    desk.record(
        "queue.created",
        scope=scope.slug,
        queue=slug,
        data={"ordering": settings.ordering, "consumer_mode": settings.consumer_mode},
    )
    return queue


def update_queue(desk: Desk, command: c.UpdateQueue) -> Queue:
    """A new ordering gives every open message its new place in the same transaction."""
    queue = desk.queue(command.queue)
    before = queue.settings
    settings = checks.queue_settings(command.settings, desk.limits, before)
    if settings.consumer_mode is not before.consumer_mode:
        if queue.system:
            raise SystemQueue(queue=queue.path, verb="given another consumer mode")
        _refuse_open(desk, queue, "queue", queue.path)
    if settings.schema != before.schema:
        _check_schema(desk, queue.scope_id, queue.path, settings)
    queue = msgspec.structs.replace(queue, settings=settings, updated_at=desk.now)
    desk.tx.update_queue(queue)
    desk.record("queue.updated", scope=queue.scope, queue=queue.slug, data=dict(command.settings))
    if settings.ordering is not before.ordering:
        after = 0
        while rows := desk.tx.open_rows(queue.id, after, REORDER_STEP):
            for row in rows:
                priorities.place(desk, row, queue, anew=True)
            after = rows[-1].seq
    _wake(desk, queue)
    return queue


def set_queue_state(desk: Desk, command: c.SetQueueState) -> Queue:
    queue = desk.queue(command.queue)
    if queue.state is command.state:
        return queue
    if queue.system:
        raise SystemQueue(queue=queue.path, verb=f"changed to {command.state}")
    if command.state not in PLACE_CHANGES[queue.state]:
        raise WrongPlaceState(kind="queue", slug=queue.path, state=queue.state, wanted=command.state)
    before = queue.state
    queue = msgspec.structs.replace(queue, state=command.state, updated_at=desk.now)
    desk.tx.update_queue(queue)
    desk.record("queue.state", scope=queue.scope, queue=queue.slug, data={"from": before, "to": queue.state})
    _wake(desk, queue)
    return queue


def delete_queue(desk: Desk, command: c.DeleteQueue) -> None:
    """Only without open messages; what has ended is archived first, not lost."""
    queue = desk.queue(command.queue)
    if queue.system:
        raise SystemQueue(queue=queue.path, verb="deleted")
    _refuse_open(desk, queue, "queue", queue.path)
    _remove(desk, queue)


def _refuse_open(desk: Desk, queue: Queue, kind: str, slug: str) -> None:
    counts = desk.tx.counts(queue.id)
    held = counts.open + (counts.dead if kind == "scope" else 0)
    if kind == "queue":
        held += desk.tx.dead_from(queue.id)
    for subscription in desk.tx.subscriptions(queue.id):
        held += desk.tx.counts(queue.id, subscription.id).open
    if held:
        raise NotEmpty(kind=kind, slug=slug, count=held)


def _remove(desk: Desk, queue: Queue) -> None:
    for subscription in desk.tx.subscriptions(queue.id):
        desk.tx.delete_subscription(subscription.id)
    while rows := desk.tx.ended_in(queue.id, REORDER_STEP):
        desk.tx.archive(rows)
        for row in rows:
            desk.tally(row, queue, -1)
    desk.tx.delete_queue(queue.id)
    desk.record("queue.deleted", scope=queue.scope, queue=queue.slug, data={})


def _wake(desk: Desk, queue: Queue) -> None:
    """Consumers who found nothing may find something now."""
    desk.woken[queue.id] += desk.tx.counts(queue.id).pending
    for subscription in desk.tx.subscriptions(queue.id):
        desk.woken[-subscription.id] += desk.tx.counts(queue.id, subscription.id).pending
