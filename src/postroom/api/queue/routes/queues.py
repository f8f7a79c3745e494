"""Queues of a scope: made, read with their depths, changed, paused, drained, archived, deleted."""

from typing import Any

from fastapi import APIRouter, Response

from postroom.api.queue import views
from postroom.api.queue.access import AccessCheck, needs
from postroom.api.queue.bodies import NewQueue, QueueChanges
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import Many, One, many, one
from postroom.api.queue.request_context import RequestContext, Visiting
from postroom.api.queue.routes.scopes import ABOUT, STATES
from postroom.api.responses import Json
from postroom.errors import InvalidField
from postroom.kernel import commands as c
from postroom.kernel.access.acl import AccessVerdict
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import LifecycleState, Queue
from postroom.kernel.ports import Reader

MOST_QUEUES = 500
PLACE = "/scopes/{scope_id}/queues"


async def shown(visit: RequestContext, queue: Queue) -> dict[str, Any]:
    counts = await visit.house.ask(lambda reader: reader.counts(queue.id))
    return views.queue(queue, counts, visit.opaque)


def add(routes: APIRouter) -> None:
    @routes.post(
        PLACE,
        status_code=201,
        openapi_extra=needs("manage", "queue.create"),
        responses={201: {"model": One[views.QueueView]}},
    )
    async def create_queue(visit: Visiting, scope_id: str, body: NewQueue) -> Json:
        """Make a queue. Slugs that begin with _ belong to the system."""
        scope = visit.scope
        there = await visit.house.ask(lambda reader: len(reader.queues(visit.tenant, scope.slug)))
        if there >= MOST_QUEUES:
            raise InvalidField("slug", f"is one too many: a scope has at most {MOST_QUEUES} queues")
        made = await visit.house.run(
            c.CreateQueue(queue=f"{scope.slug}/{body.slug}", settings=body.settings(), **visit.who)
        )
        visit.enter(scope, made)
        return one(await shown(visit, made), status=201)

    @routes.get(
        PLACE, openapi_extra=needs("view", "queue.list"), responses={200: {"model": Many[views.QueueView]}}
    )
    async def list_queues(visit: Visiting, scope_id: str, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """The queues this key can see, system queues too, with how many messages each holds."""

        def look(reader: Reader) -> list[dict[str, Any]]:
            guard = AccessCheck(reader, visit, visit.house.clock.now())
            return [
                views.queue(queue, reader.counts(queue.id), visit.opaque)
                for queue in reader.queues(visit.tenant, visit.scope.slug)
                if guard.verdict(visit.scope, queue.id, Permission.VIEW) is AccessVerdict.ALLOWED
            ]

        return many(*cut(await visit.house.ask(look), cursor, limit))

    @routes.get(
        PLACE + "/{queue_id}",
        openapi_extra=needs("view", "queue.read"),
        responses={200: {"model": One[views.QueueView]}},
    )
    async def read_queue(visit: Visiting, scope_id: str, queue_id: str) -> Json:
        """One queue, by id or slug, with how many messages it holds."""
        return one(await shown(visit, visit.queue))

    @routes.patch(
        PLACE + "/{queue_id}",
        openapi_extra=needs("manage", "queue.update"),
        responses={200: {"model": One[views.QueueView]}},
    )
    async def update_queue(visit: Visiting, scope_id: str, queue_id: str, body: QueueChanges) -> Json:
        """Change settings; a new ordering gives every waiting message its new place."""
        changed = await visit.house.run(
            c.UpdateQueue(queue=visit.queue.path, settings=body.settings(), **visit.who)
        )
        return one(await shown(visit, changed))

    @routes.delete(PLACE + "/{queue_id}", status_code=204, openapi_extra=needs("manage", "queue.delete"))
    async def delete_queue(visit: Visiting, scope_id: str, queue_id: str) -> Response:
        """Only when no open messages are left in it."""
        await visit.house.run(c.DeleteQueue(queue=visit.queue.path, **visit.who))
        return Response(status_code=204)

    for verb, state in STATES.items():
        _add_state(routes, verb, state)


def _add_state(routes: APIRouter, verb: str, state: LifecycleState) -> None:
    @routes.post(
        f"{PLACE}/{{queue_id}}/{verb}",
        name=f"{verb}_queue",
        operation_id=f"{verb}_queue",
        description=ABOUT[verb],
        openapi_extra=needs("manage", f"queue.{verb}"),
        responses={200: {"model": One[views.QueueView]}},
    )
    async def set_state(visit: Visiting, scope_id: str, queue_id: str) -> Json:
        changed = await visit.house.run(c.SetQueueState(queue=visit.queue.path, state=state, **visit.who))
        return one(await shown(visit, changed))
