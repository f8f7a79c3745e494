"""Grants of scopes, access lists of queues, trust between scopes, roles, and tenants themselves."""

from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import Field

from postroom.api.queue import upkeep_views as views
from postroom.api.queue.bodies import Moment, PermissionWord, RequestBody, Slug, Text, Whole, moment
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.gate import Calling, RouteCall, needs
from postroom.api.responses import Json
from postroom.kernel.access.acl import Principal
from postroom.services.lists import ACL_OPERATIONS, GRANT_OPERATIONS
from postroom.services.roles import Roles
from postroom.services.tenants import MOST_RATE, Tenants
from postroom.services.trusts import Trusts

GRANTS, LISTS = "/scopes/{scope_id}/grants", "/scopes/{scope_id}/queues/{queue_id}/acl"
TRUSTS, ROLES = "/scopes/{scope_id}/trusts", "/iam/custom-roles"
Rate = Annotated[Whole, Field(ge=1, le=MOST_RATE)]
PermissionName = Literal["view", "publish", "consume", "manage"]


class NewEntry(RequestBody):
    principal_type: Principal
    principal_id: Text
    permissions: Annotated[list[PermissionName], Field(min_length=1)]
    expires_at: Moment | None = None


class NewTrust(RequestBody):
    target_scope_id: str
    permissions: Annotated[list[Literal["route", "publish"]], Field(min_length=1)]
    enabled: bool = True


class TrustChange(RequestBody):
    enabled: bool


class NewRole(RequestBody):
    name: Text
    module_permissions: list[PermissionWord]


class UserPermissions(RequestBody):
    permissions: list[PermissionWord]


class NewTenant(RequestBody):
    slug: Slug
    display_name: Text = ""
    partner: Text | None = None


class TenantRates(RequestBody):
    """Requests a minute; what is left out stays as it is for all."""

    key: Rate | None = None
    user: Rate | None = None
    tenant: Rate | None = None


async def _add_entry(call: RouteCall, scope: str, queue: str | None, body: NewEntry) -> Json:
    made = await call.services.lists.add(
        call.caller,
        scope,
        queue,
        principal_type=body.principal_type,
        principal_id=body.principal_id,
        permissions=body.permissions,
        expires_at=moment(body.expires_at),
    )
    return one(views.acl_entry(made), status=201)


async def _list_entries(
    call: RouteCall, scope: str, queue: str | None, limit: int, cursor: str | None
) -> Json:
    found = await call.services.lists.list_all(call.caller, scope, queue)
    return many(*cut([views.acl_entry(each) for each in found], cursor, limit))


def add(routes: APIRouter) -> None:
    _add_grants(routes)
    _add_lists(routes)
    _add_trusts(routes)
    _add_roles(routes)
    _add_tenants(routes)


def _add_grants(routes: APIRouter) -> None:
    @routes.post(GRANTS, status_code=201, openapi_extra=needs(GRANT_OPERATIONS["create"]))
    async def create_grant(call: Calling, scope_id: str, body: NewEntry) -> Json:
        """Let somebody into a scope. The first grant closes it to everybody else but administrators."""
        return await _add_entry(call, scope_id, None, body)

    @routes.get(GRANTS, openapi_extra=needs(GRANT_OPERATIONS["list"]))
    async def list_grants(call: Calling, scope_id: str, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """Who is let into the scope; empty: everybody with the permission."""
        return await _list_entries(call, scope_id, None, limit, cursor)

    @routes.delete(GRANTS + "/{grant_id}", status_code=204, openapi_extra=needs(GRANT_OPERATIONS["delete"]))
    async def delete_grant(call: Calling, scope_id: str, grant_id: str) -> Response:
        """With the last grant the scope is open to everybody again."""
        await call.services.lists.remove(call.caller, scope_id, grant_id)
        return Response(status_code=204)


def _add_lists(routes: APIRouter) -> None:
    @routes.post(LISTS, status_code=201, openapi_extra=needs(ACL_OPERATIONS["create"]))
    async def create_acl(call: Calling, scope_id: str, queue_id: str, body: NewEntry) -> Json:
        """An entry of a queue's own list, which counts instead of the scope's grants."""
        return await _add_entry(call, scope_id, queue_id, body)

    @routes.get(LISTS, openapi_extra=needs(ACL_OPERATIONS["list"]))
    async def list_acl(
        call: Calling, scope_id: str, queue_id: str, limit: Limit = 100, cursor: Cursor = None
    ) -> Json:
        """The entries of a queue; empty: the grants of its scope count."""
        return await _list_entries(call, scope_id, queue_id, limit, cursor)

    @routes.delete(LISTS + "/{entry_id}", status_code=204, openapi_extra=needs(ACL_OPERATIONS["delete"]))
    async def delete_acl(call: Calling, scope_id: str, queue_id: str, entry_id: str) -> Response:
        """With the last entry the grants of the scope count again."""
        await call.services.lists.remove(call.caller, scope_id, entry_id, queue_id)
        return Response(status_code=204)


def _add_trusts(routes: APIRouter) -> None:
    @routes.post(TRUSTS, status_code=201, openapi_extra=needs(Trusts.CREATE))
    async def create_trust(call: Calling, scope_id: str, body: NewTrust) -> Json:
        """Let this scope route or publish into another one of the tenant."""
        made = await call.services.trusts.create(
            call.caller, scope_id, body.target_scope_id, body.permissions, enabled=body.enabled
        )
        return one(views.trust(made, call.ids), status=201)

    @routes.get(TRUSTS, openapi_extra=needs(Trusts.LIST))
    async def list_trusts(call: Calling, scope_id: str, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """Scopes into which this one may route or publish."""
        found = await call.services.trusts.list_all(call.caller, scope_id)
        return many(*cut([views.trust(each, call.ids) for each in found], cursor, limit))

    @routes.patch(TRUSTS + "/{trust_id}", openapi_extra=needs(Trusts.UPDATE))
    async def change_trust(call: Calling, scope_id: str, trust_id: str, body: TrustChange) -> Json:
        """Switch a trust off or on."""
        changed = await call.services.trusts.switch(call.caller, scope_id, trust_id, body.enabled)
        return one(views.trust(changed, call.ids))

    @routes.delete(TRUSTS + "/{trust_id}", status_code=204, openapi_extra=needs(Trusts.DELETE))
    async def delete_trust(call: Calling, scope_id: str, trust_id: str) -> Response:
        """Takes effect at once."""
        await call.services.trusts.delete(call.caller, scope_id, trust_id)
        return Response(status_code=204)


def _add_roles(routes: APIRouter) -> None:
    @routes.post(ROLES, status_code=201, openapi_extra=needs(Roles.CREATE))
    async def create_role(call: Calling, body: NewRole) -> Json:
        """A role of the tenant's own, for keys to carry."""
        made = await call.services.roles.create(call.caller, body.name, body.module_permissions)
        return one(views.role(made), status=201)

    @routes.get(ROLES, openapi_extra=needs(Roles.LIST))
    async def list_roles(call: Calling) -> Json:
        """The roles of the tenant itself."""
        return many([views.role(each) for each in await call.services.roles.list_all(call.caller)])

    @routes.delete(ROLES + "/{name}", status_code=204, openapi_extra=needs(Roles.DELETE))
    async def delete_role(call: Calling, name: str) -> Response:
        """Keys with this role lose what it gave at once."""
        await call.services.roles.delete(call.caller, name)
        return Response(status_code=204)

    @routes.put("/users/{user_id}/module-permissions", openapi_extra=needs(Roles.SET_USER))
    async def set_permissions(call: Calling, user_id: str, body: UserPermissions) -> Json:
        """What a user may do, replacing what was set before; keys assigned to the user follow at once."""
        given = await call.services.roles.set_user_permissions(call.caller, user_id, body.permissions)
        return one({"user_id": user_id, "permissions": given})


def _add_tenants(routes: APIRouter) -> None:
    @routes.post("/tenants", status_code=201, openapi_extra=needs(Tenants.CREATE))
    async def create_tenant(call: Calling, body: NewTenant) -> Json:
        """For the owner: another tenant, which sees nothing of the others. Then make a key for it."""
        made = await call.services.tenants.create(
            call.caller, body.slug, display_name=body.display_name, partner=body.partner
        )
        return one(made, status=201)

    @routes.get("/tenants", openapi_extra=needs(Tenants.LIST))
    async def list_tenants(call: Calling) -> Json:
        """For the owner: all tenants, and the measures they have of their own."""
        return many(await call.services.tenants.list_all(call.caller))

    @routes.put("/tenants/{slug}/rates", openapi_extra=needs(Tenants.SET_RATES))
    async def set_rates(call: Calling, slug: str, body: TenantRates) -> Json:
        """How many requests a minute the tenant has; also for the owner's own tenant."""
        rates = body.model_dump(exclude_none=True)
        return one(await call.services.tenants.set_rates(call.caller, slug, rates))
