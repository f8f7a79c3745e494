"""Scopes: made, read, changed, paused, archived, deleted."""

from fastapi import APIRouter, Response

from postroom.api.queue import views
from postroom.api.queue.bodies import NewScope, ScopeChanges
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import Many, One, many, one
from postroom.api.queue.gate import Calling, needs
from postroom.api.responses import Json
from postroom.services.scopes import STATES, Scopes

PATH = "/scopes"
ABOUT = {
    "pause": "Nothing is taken in and nothing given out until it is resumed.",
    "resume": "Messages are taken in and given out again.",
    "drain": "No more messages are taken in; what is there is given out.",
    "archive": "Nothing is taken in or given out; what is there can be read.",
    "unarchive": "Open again.",
}


def add(routes: APIRouter) -> None:
    @routes.post(
        PATH,
        status_code=201,
        openapi_extra=needs(Scopes.CREATE),
        responses={201: {"model": One[views.ScopeView]}},
    )
    async def create_scope(call: Calling, body: NewScope) -> Json:
        """Make a scope, with its five system queues. A slug that is taken is a conflict."""
        made = await call.services.scopes.create(
            call.caller, body.slug, display_name=body.display_name, description=body.description or ""
        )
        return one(views.scope(made, call.ids), status=201)

    @routes.get(PATH, openapi_extra=needs(Scopes.LIST), responses={200: {"model": Many[views.ScopeView]}})
    async def list_scopes(call: Calling, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """The scopes this key can see."""
        found = await call.services.scopes.list_all(call.caller)
        return many(*cut([views.scope(scope, call.ids) for scope in found], cursor, limit))

    @routes.get(
        PATH + "/{scope_id}",
        openapi_extra=needs(Scopes.READ),
        responses={200: {"model": One[views.ScopeView]}},
    )
    async def read_scope(call: Calling, scope_id: str) -> Json:
        """One scope, by id or slug."""
        return one(views.scope(await call.services.scopes.read(call.caller, scope_id), call.ids))

    @routes.patch(
        PATH + "/{scope_id}",
        openapi_extra=needs(Scopes.UPDATE),
        responses={200: {"model": One[views.ScopeView]}},
    )
    async def update_scope(call: Calling, scope_id: str, body: ScopeChanges) -> Json:
        """Change what a scope is called and what is said of it."""
        changed = await call.services.scopes.update(
            call.caller, scope_id, display_name=body.display_name, description=body.description
        )
        return one(views.scope(changed, call.ids))

    @routes.delete(PATH + "/{scope_id}", status_code=204, openapi_extra=needs(Scopes.DELETE))
    async def delete_scope(call: Calling, scope_id: str) -> Response:
        """Only when no open messages and no dead letters are left in it."""
        await call.services.scopes.delete(call.caller, scope_id)
        return Response(status_code=204)

    for verb in STATES:
        _add_state(routes, verb)


def _add_state(routes: APIRouter, verb: str) -> None:
    @routes.post(
        f"{PATH}/{{scope_id}}/{verb}",
        name=f"{verb}_scope",
        operation_id=f"{verb}_scope",
        description=ABOUT[verb],
        openapi_extra=needs(Scopes.CHANGE[verb]),
        responses={200: {"model": One[views.ScopeView]}},
    )
    async def set_state(call: Calling, scope_id: str) -> Json:
        changed = await call.services.scopes.set_state(call.caller, scope_id, verb)
        return one(views.scope(changed, call.ids))
