"""Scopes: made, read, changed, paused, archived, deleted."""

from fastapi import APIRouter, Response

from postroom.api.queue import views
from postroom.api.queue.access import AccessCheck, needs
from postroom.api.queue.bodies import NewScope, ScopeChanges
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import Many, One, many, one
from postroom.api.queue.request_context import Visiting
from postroom.api.responses import Json
from postroom.kernel import commands as c
from postroom.kernel.access.acl import AccessVerdict
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import LifecycleState, Scope
from postroom.kernel.ports import Reader

STATES = {
    "pause": LifecycleState.PAUSED,
    "resume": LifecycleState.ACTIVE,
    "drain": LifecycleState.DRAINING,
    "archive": LifecycleState.ARCHIVED,
    "unarchive": LifecycleState.ACTIVE,
}
ABOUT = {
    "pause": "Nothing is taken in and nothing given out until it is resumed.",
    "resume": "Messages are taken in and given out again.",
    "drain": "No more messages are taken in; what is there is given out.",
    "archive": "Nothing is taken in or given out; what is there can be read.",
    "unarchive": "Open again.",
}


def add(routes: APIRouter) -> None:
    @routes.post(
        "/scopes",
        status_code=201,
        openapi_extra=needs("manage", "scope.create", whole=True),
        responses={201: {"model": One[views.ScopeView]}},
    )
    async def create_scope(visit: Visiting, body: NewScope) -> Json:
        """Make a scope, with its five system queues. A slug that is taken is a conflict."""
        made = await visit.house.run(
            c.CreateScope(
                slug=body.slug,
                display_name=body.display_name,
                description=body.description or "",
                **visit.who,
            )
        )
        visit.enter(made)
        return one(views.scope(made, visit.opaque), status=201)

    @routes.get(
        "/scopes",
        openapi_extra=needs("view", "scope.list"),
        responses={200: {"model": Many[views.ScopeView]}},
    )
    async def list_scopes(visit: Visiting, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """The scopes this key can see."""

        def look(reader: Reader) -> list[Scope]:
            guard = AccessCheck(reader, visit, visit.house.clock.now())
            return [
                scope
                for scope in reader.scopes(visit.tenant)
                if guard.verdict(scope, None, Permission.VIEW) is AccessVerdict.ALLOWED
                or guard.named_in(scope)
            ]

        found = await visit.house.ask(look)
        return many(*cut([views.scope(scope, visit.opaque) for scope in found], cursor, limit))

    @routes.get(
        "/scopes/{scope_id}",
        openapi_extra=needs("view", "scope.read"),
        responses={200: {"model": One[views.ScopeView]}},
    )
    async def read_scope(visit: Visiting, scope_id: str) -> Json:
        """One scope, by id or slug."""
        return one(views.scope(visit.scope, visit.opaque))

    @routes.patch(
        "/scopes/{scope_id}",
        openapi_extra=needs("manage", "scope.update"),
        responses={200: {"model": One[views.ScopeView]}},
    )
    async def update_scope(visit: Visiting, scope_id: str, body: ScopeChanges) -> Json:
        """Change what a scope is called and what is said of it."""
        changed = await visit.house.run(
            c.UpdateScope(
                slug=visit.scope.slug,
                display_name=body.display_name,
                description=body.description,
                **visit.who,
            )
        )
        return one(views.scope(changed, visit.opaque))

    @routes.delete(
        "/scopes/{scope_id}", status_code=204, openapi_extra=needs("manage", "scope.delete", whole=True)
    )
    async def delete_scope(visit: Visiting, scope_id: str) -> Response:
        """Only when no open messages and no dead letters are left in it."""
        await visit.house.run(c.DeleteScope(slug=visit.scope.slug, **visit.who))
        return Response(status_code=204)

    for verb, state in STATES.items():
        _add_state(routes, verb, state)


def _add_state(routes: APIRouter, verb: str, state: LifecycleState) -> None:
    @routes.post(
        f"/scopes/{{scope_id}}/{verb}",
        name=f"{verb}_scope",
        operation_id=f"{verb}_scope",
        description=ABOUT[verb],
        openapi_extra=needs("manage", f"scope.{verb}"),
        responses={200: {"model": One[views.ScopeView]}},
    )
    async def set_state(visit: Visiting, scope_id: str) -> Json:
        changed = await visit.house.run(c.SetScopeState(slug=visit.scope.slug, state=state, **visit.who))
        return one(views.scope(changed, visit.opaque))
