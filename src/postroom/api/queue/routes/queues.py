"""Queues of a scope: made, read with their depths, changed, paused, drained, archived, deleted."""

from fastapi import APIRouter, Response

from postroom.api.queue import views
from postroom.api.queue.bodies import NewQueue, QueueChanges
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import Many, One, many, one
from postroom.api.queue.gate import Calling, needs
from postroom.api.queue.routes.scopes import ABOUT
from postroom.api.responses import Json
from postroom.services.queues import Queues
from postroom.services.scopes import STATES

PATH = "/scopes/{scope_id}/queues"


def add(routes: APIRouter) -> None:
    @routes.post(
        PATH,
        status_code=201,
        openapi_extra=needs(Queues.CREATE),
        responses={201: {"model": One[views.QueueView]}},
    )
    async def create_queue(call: Calling, scope_id: str, body: NewQueue) -> Json:
        """Make a queue. Slugs that begin with _ belong to the system."""
        made = await call.services.queues.create(call.caller, scope_id, body.slug, body.settings())
        return one(views.queue(made.queue, made.counts, call.ids), status=201)

    @routes.get(PATH, openapi_extra=needs(Queues.LIST), responses={200: {"model": Many[views.QueueView]}})
    async def list_queues(call: Calling, scope_id: str, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """The queues this key can see, system queues too, with how many messages each holds."""
        found = await call.services.queues.list_all(call.caller, scope_id)
        shown = [views.queue(each.queue, each.counts, call.ids) for each in found]
        return many(*cut(shown, cursor, limit))

    @routes.get(
        PATH + "/{queue_id}",
        openapi_extra=needs(Queues.READ),
        responses={200: {"model": One[views.QueueView]}},
    )
    async def read_queue(call: Calling, scope_id: str, queue_id: str) -> Json:
        """One queue, by id or slug, with how many messages it holds."""
        found = await call.services.queues.read(call.caller, scope_id, queue_id)
        return one(views.queue(found.queue, found.counts, call.ids))

    @routes.patch(
        PATH + "/{queue_id}",
        openapi_extra=needs(Queues.UPDATE),
        responses={200: {"model": One[views.QueueView]}},
    )
    async def update_queue(call: Calling, scope_id: str, queue_id: str, body: QueueChanges) -> Json:
        """Change settings; a new ordering gives every waiting message its new place."""
        changed = await call.services.queues.update(call.caller, scope_id, queue_id, body.settings())
        return one(views.queue(changed.queue, changed.counts, call.ids))

    @routes.delete(PATH + "/{queue_id}", status_code=204, openapi_extra=needs(Queues.DELETE))
    async def delete_queue(call: Calling, scope_id: str, queue_id: str) -> Response:
        """Only when no open messages are left in it."""
        await call.services.queues.delete(call.caller, scope_id, queue_id)
        return Response(status_code=204)

    for verb in STATES:
        _add_state(routes, verb)


def _add_state(routes: APIRouter, verb: str) -> None:
    @routes.post(
        f"{PATH}/{{queue_id}}/{verb}",
        name=f"{verb}_queue",
        operation_id=f"{verb}_queue",
        description=ABOUT[verb],
        openapi_extra=needs(Queues.CHANGE[verb]),
        responses={200: {"model": One[views.QueueView]}},
    )
    async def set_state(call: Calling, scope_id: str, queue_id: str) -> Json:
        changed = await call.services.queues.set_state(call.caller, scope_id, queue_id, verb)
        return one(views.queue(changed.queue, changed.counts, call.ids))
