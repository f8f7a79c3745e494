"""Grants of scopes, access lists of queues, trust between scopes, roles, and tenants themselves."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Response
from pydantic import Field

from postroom.api.queue import documents
from postroom.api.queue.access import needs, visible_scope
from postroom.api.queue.bodies import RequestBody, Slug, Text
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.request_context import RequestContext, Visiting
from postroom.api.queue.service import new_id
from postroom.api.queue.views import when
from postroom.api.responses import Json
from postroom.clock import from_datetime
from postroom.errors import InvalidField
from postroom.kernel import service_commands
from postroom.kernel.access import acl, permissions, trust
from postroom.kernel.access.acl import AclEntry, Principal
from postroom.kernel.access.permissions import ROLE_PERMISSIONS, Permission
from postroom.kernel.access.trust import Trust
from postroom.services.errors import NoSuchThing, PermissionMissing

Rate = Annotated[int, Field(ge=1, le=1_000_000)]
PermissionName = Literal["view", "publish", "consume", "manage"]


class NewEntry(RequestBody):
    principal_type: Principal
    principal_id: Text
    permissions: Annotated[list[PermissionName], Field(min_length=1)]
    expires_at: datetime | None = None


class NewTrust(RequestBody):
    target_scope_id: str
    permissions: Annotated[list[Literal["route", "publish"]], Field(min_length=1)]
    enabled: bool = True


class TrustChange(RequestBody):
    enabled: bool


class CustomRole(RequestBody):
    name: Text
    module_permissions: list[str]


class UserPermissions(RequestBody):
    permissions: list[str]


class NewTenant(RequestBody):
    slug: Slug
    display_name: Text = ""
    partner: Text | None = None


class TenantRates(RequestBody):
    """Requests a minute; what is left out stays as the house has it."""

    key: Rate | None = None
    user: Rate | None = None
    tenant: Rate | None = None


def _shown(entry: AclEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "principal_type": entry.principal_type,
        "principal_id": entry.principal_id,
        "permissions": list(entry.permissions),
        "expires_at": when(entry.expires_at),
        "created_at": when(entry.created_at),
    }


def _names(visit: RequestContext, names: list[str], field: str) -> list[str]:
    """Nobody can give what they do not have."""
    for name in names:
        permission = permissions.parsed(name)
        if permission is None:
            raise InvalidField(field, f"{name!r} is no permission")
        if permission not in visit.caller.permissions:
            raise PermissionMissing(permission=permission)
    return sorted(set(names))


async def _add_entry(visit: RequestContext, kind: str, prefix: str, body: NewEntry) -> Json:
    now = visit.house.clock.now()
    if body.expires_at is not None and from_datetime(body.expires_at) <= now:
        raise InvalidField("expires_at", "lies in the past")
    entry = AclEntry(
        id=new_id(),
        principal_type=body.principal_type,
        principal_id=body.principal_id,
        permissions=tuple(Permission(name) for name in sorted(set(body.permissions))),
        expires_at=from_datetime(body.expires_at) if body.expires_at else None,
        created_at=now,
    )
    for permission in entry.permissions:
        if permission not in visit.caller.permissions:
            raise PermissionMissing(permission=permission)
    data = msgspec.to_builtins(entry)
    await documents.file(visit, kind, prefix + entry.id, data, note={"id": entry.id}, scope=visit.scope.slug)
    return one(_shown(entry), status=201)


async def _list_entries(
    visit: RequestContext, kind: str, prefix: str, limit: int, cursor: str | None
) -> Json:
    found = await documents.listed(visit, kind, prefix)
    return many(*cut([_shown(acl.read(each.data)) for each in found], cursor, limit))


def add(routes: APIRouter) -> None:
    _add_entries(routes)
    _add_trusts(routes)
    _add_roles(routes)
    _add_tenants(routes)


def _add_entries(routes: APIRouter) -> None:
    grants, lists = "/scopes/{scope_id}/grants", "/scopes/{scope_id}/queues/{queue_id}/acl"

    @routes.post(grants, status_code=201, openapi_extra=needs("manage", "grant.create"))
    async def create_grant(visit: Visiting, scope_id: str, body: NewEntry) -> Json:
        """Let somebody into a scope. The first grant closes it to everybody else but administrators."""
        return await _add_entry(visit, acl.GRANT, f"{visit.scope.id}/", body)

    @routes.get(grants, openapi_extra=needs("manage", "grant.list"))
    async def list_grants(visit: Visiting, scope_id: str, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """Who is let into the scope; empty: everybody with the permission."""
        return await _list_entries(visit, acl.GRANT, f"{visit.scope.id}/", limit, cursor)

    @routes.delete(grants + "/{grant_id}", status_code=204, openapi_extra=needs("manage", "grant.delete"))
    async def delete_grant(visit: Visiting, scope_id: str, grant_id: str) -> Response:
        """With the last grant the scope is open to everybody again."""
        key, note = f"{visit.scope.id}/{grant_id}", {"id": grant_id}
        await documents.unfile(visit, acl.GRANT, key, "grant", note=note, scope=visit.scope.slug)
        return Response(status_code=204)

    @routes.post(lists, status_code=201, openapi_extra=needs("manage", "acl.create"))
    async def create_acl(visit: Visiting, scope_id: str, queue_id: str, body: NewEntry) -> Json:
        """An entry of a queue's own list, which counts instead of the scope's grants."""
        return await _add_entry(visit, acl.ENTRY, f"{visit.scope.id}/{visit.queue.id}/", body)

    @routes.get(lists, openapi_extra=needs("manage", "acl.list"))
    async def list_acl(
        visit: Visiting, scope_id: str, queue_id: str, limit: Limit = 100, cursor: Cursor = None
    ) -> Json:
        """The entries of a queue; empty: the grants of its scope count."""
        return await _list_entries(visit, acl.ENTRY, f"{visit.scope.id}/{visit.queue.id}/", limit, cursor)

    @routes.delete(lists + "/{entry_id}", status_code=204, openapi_extra=needs("manage", "acl.delete"))
    async def delete_acl(visit: Visiting, scope_id: str, queue_id: str, entry_id: str) -> Response:
        """With the last entry the grants of the scope count again."""
        key, note = f"{visit.scope.id}/{visit.queue.id}/{entry_id}", {"id": entry_id}
        await documents.unfile(visit, acl.ENTRY, key, "acl entry", note=note, scope=visit.scope.slug)
        return Response(status_code=204)


def _trust_shown(visit: RequestContext, found: Trust) -> dict[str, Any]:
    return {
        "id": found.id,
        "source_scope_id": visit.opaque.scope(found.source_id),
        "target_scope_id": visit.opaque.scope(found.target_id),
        "permissions": list(found.permissions),
        "enabled": found.enabled,
        "created_at": when(found.created_at),
    }


def _add_trusts(routes: APIRouter) -> None:
    place = "/scopes/{scope_id}/trusts"

    @routes.post(place, status_code=201, openapi_extra=needs("manage", "trust.create", whole=True))
    async def create_trust(visit: Visiting, scope_id: str, body: NewTrust) -> Json:
        """Let this scope route or publish into another one of the tenant."""
        target = await visit.house.ask(lambda reader: visible_scope(reader, visit, body.target_scope_id))
        if target.id == visit.scope.id:
            raise InvalidField("target_scope_id", "is the scope itself, which needs no trust")
        made = Trust(
            id=new_id(),
            source_id=visit.scope.id,
            target_id=target.id,
            permissions=tuple(body.permissions),
            enabled=body.enabled,
            created_at=visit.house.clock.now(),
        )
        note = {"id": made.id, "target": target.slug}
        key = f"{visit.scope.id}/{made.id}"
        await documents.file(
            visit, trust.KIND, key, msgspec.to_builtins(made), note=note, scope=visit.scope.slug
        )
        return one(_trust_shown(visit, made), status=201)

    @routes.get(place, openapi_extra=needs("manage", "trust.list"))
    async def list_trusts(visit: Visiting, scope_id: str, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """Scopes into which this one may route or publish."""
        found = await documents.listed(visit, trust.KIND, f"{visit.scope.id}/")
        return many(*cut([_trust_shown(visit, trust.read(each.data)) for each in found], cursor, limit))

    @routes.patch(place + "/{trust_id}", openapi_extra=needs("manage", "trust.update", whole=True))
    async def change_trust(visit: Visiting, scope_id: str, trust_id: str, body: TrustChange) -> Json:
        """Switch a trust off or on."""
        key = f"{visit.scope.id}/{trust_id}"
        kept = trust.read((await documents.found(visit, trust.KIND, key, "trust")).data)
        changed = msgspec.structs.replace(kept, enabled=body.enabled)
        data, note = msgspec.to_builtins(changed), {"id": trust_id, "enabled": body.enabled}
        await documents.file(visit, trust.KIND, key, data, note=note, scope=visit.scope.slug)
        return one(_trust_shown(visit, changed))

    @routes.delete(
        place + "/{trust_id}", status_code=204, openapi_extra=needs("manage", "trust.delete", whole=True)
    )
    async def delete_trust(visit: Visiting, scope_id: str, trust_id: str) -> Response:
        """Takes effect at once."""
        key, note = f"{visit.scope.id}/{trust_id}", {"id": trust_id}
        await documents.unfile(visit, trust.KIND, key, "trust", note=note, scope=visit.scope.slug)
        return Response(status_code=204)


def _add_roles(routes: APIRouter) -> None:
    @routes.post(
        "/iam/custom-roles", status_code=201, openapi_extra=needs("manage", "role.create", whole=True)
    )
    async def create_role(visit: Visiting, body: CustomRole) -> Json:
        """A role of the tenant's own, for keys to carry."""
        if body.name in ROLE_PERMISSIONS:
            raise InvalidField("name", f"{body.name!r} is a role of the house")
        data = {
            "name": body.name,
            "permissions": _names(visit, body.module_permissions, "module_permissions"),
        }
        await documents.file(
            visit, permissions.ROLES, body.name, data, note={"name": body.name}, new=True, label=body.name
        )
        return one({"name": body.name, "module_permissions": data["permissions"]}, status=201)

    @routes.get("/iam/custom-roles", openapi_extra=needs("manage", "role.list", whole=True))
    async def list_roles(visit: Visiting) -> Json:
        """The roles of the tenant itself."""
        found = await documents.listed(visit, permissions.ROLES)
        return many(
            [{"name": each.data["name"], "module_permissions": each.data["permissions"]} for each in found]
        )

    @routes.delete(
        "/iam/custom-roles/{name}", status_code=204, openapi_extra=needs("manage", "role.delete", whole=True)
    )
    async def delete_role(visit: Visiting, name: str) -> Response:
        """Keys with this role lose what it gave at once."""
        await documents.unfile(visit, permissions.ROLES, name, "role", note={"name": name})
        return Response(status_code=204)

    @routes.put(
        "/users/{user_id}/module-permissions", openapi_extra=needs("manage", "user.permissions", whole=True)
    )
    async def set_permissions(visit: Visiting, user_id: str, body: UserPermissions) -> Json:
        """What a user may do, replacing what was set before; keys assigned to the user follow at once."""
        data = {"permissions": _names(visit, body.permissions, "permissions")}
        await documents.file(visit, permissions.USERS, user_id, data, note={"user": user_id})
        return one({"user_id": user_id, **data})


def _add_tenants(routes: APIRouter) -> None:
    @routes.post("/tenants", status_code=201, openapi_extra=needs("manage", "tenant.create", owner=True))
    async def create_tenant(visit: Visiting, body: NewTenant) -> Json:
        """For the owner: another tenant, which sees nothing of the others. Then make a key for it."""
        await _file_tenant(visit, body.slug, body.model_dump(), new=True)
        return one(body.model_dump(), status=201)

    @routes.get("/tenants", openapi_extra=needs("manage", "tenant.list", owner=True))
    async def list_tenants(visit: Visiting) -> Json:
        """For the owner: all tenants, and the measures they have of their own."""
        found = await visit.house.ask(
            lambda reader: reader.documents("", permissions.TENANTS, "", "", documents.MOST)
        )
        return many([each.data for each in found])

    @routes.put("/tenants/{slug}/rates", openapi_extra=needs("manage", "tenant.rates", owner=True))
    async def set_rates(visit: Visiting, slug: str, body: TenantRates) -> Json:
        """How many requests a minute the tenant has; also for the tenant of the house itself."""
        found = await visit.house.ask(lambda reader: reader.document("", permissions.TENANTS, slug))
        if (found is None or found.gone) and slug != visit.tenant:
            raise NoSuchThing(what="tenant", id=slug)
        kept = found.data if found is not None and not found.gone else {"slug": slug}
        data = {**kept, "rates": body.model_dump(exclude_none=True)}
        await _file_tenant(visit, slug, data)
        return one(data)


async def _file_tenant(visit: RequestContext, slug: str, data: dict[str, Any], *, new: bool = False) -> None:
    await visit.house.run(
        service_commands.PutServiceDocument(
            kind=permissions.TENANTS,
            key=slug,
            data=data,
            note={"tenant": slug},
            new=new,
            label=slug,
            tenant="",
            actor=visit.caller.actor,
        )
    )
