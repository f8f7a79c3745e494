"""API keys of a scope or of the whole tenant: made (the secret is shown once), rotated, revoked."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter
from pydantic import Field

from postroom.api.queue import documents
from postroom.api.queue.access import needs
from postroom.api.queue.bodies import RequestBody, Text
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.request_context import RequestContext, Visiting
from postroom.api.queue.service import new_id
from postroom.api.queue.views import when
from postroom.api.responses import Json
from postroom.clock import from_datetime, micros
from postroom.errors import InvalidField
from postroom.kernel import commands as c
from postroom.kernel.access import keys, permissions
from postroom.kernel.access.keys import Key
from postroom.kernel.access.permissions import ADMINS, ROLE_PERMISSIONS, Permission, Role
from postroom.services.errors import NoSuchThing, PermissionMissing
from postroom.services.rights import holder_of

GRACE_S = 3600


class NewKey(RequestBody):
    name: Text
    permissions: list[str] = Field(default_factory=list, examples=[["view", "publish"]])
    role: Text | None = None
    expires_at: datetime | None = None
    assigned_user_id: Text | None = None
    groups: list[str] = Field(default_factory=list)
    actor_type: Text = "user"
    partner: Text | None = Field(default=None, description="For partner administrators; the owner sets it")


class Rotation(RequestBody):
    grace_s: Annotated[float, Field(ge=0, le=30 * 24 * 3600)] = GRACE_S


def shown(visit: RequestContext, key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "hint": key.hint,
        "scope_id": visit.opaque.scope(key.scope_id) if key.scope_id else None,
        "permissions": [f"scaiqueue:{each}" for each in key.permissions],
        "role": key.role,
        "assigned_user_id": key.user_id,
        "groups": list(key.groups),
        "actor_type": key.actor_type,
        "expires_at": when(key.expires_at),
        "revoked_at": when(key.revoked_at),
        "rotated_at": when(key.rotated_at),
        "created_at": when(key.created_at),
        "created_by": key.created_by,
    }


async def _make(visit: RequestContext, body: NewKey, scope_id: int) -> Json:
    now, caller = visit.house.clock.now(), visit.caller
    key, secret = keys.new_key(
        key_id=new_id(),
        tenant=visit.tenant,
        name=body.name,
        now=now,
        permissions=await _wanted(visit, body),
        role=body.role,
        scope_id=scope_id,
        user_id=body.assigned_user_id,
        groups=tuple(body.groups),
        partner=body.partner if caller.is_owner else None,
        actor_type=body.actor_type,
        created_by=caller.actor,
        expires_at=from_datetime(body.expires_at) if body.expires_at else None,
    )
    if key.expires_at is not None and key.expires_at <= now:
        raise InvalidField("expires_at", "lies in the past")
    await _check_may_hold(visit, key)
    steps = (keys.kept(key, caller.actor), keys.opens(key.digest, key, caller.actor))
    await visit.house.run(c.Unit(commands=steps, **visit.who))
    visit.details = {"key": key.id, "name": key.name}
    return one({**shown(visit, key), "secret": secret}, status=201)


async def _wanted(visit: RequestContext, body: NewKey) -> tuple[Permission, ...]:
    wanted: set[Permission] = set()
    for name in body.permissions:
        permission = permissions.parsed(name)
        if permission is None:
            known = ", ".join(f"scaiqueue:{each}" for each in Permission)
            raise InvalidField("permissions", f"{name!r} is none; known are {known}")
        wanted.add(permission)
    if body.role is not None and body.role not in ROLE_PERMISSIONS:
        role = str(body.role)
        found = await visit.house.ask(lambda reader: reader.document(visit.tenant, permissions.ROLES, role))
        if found is None or found.gone:
            raise InvalidField("role", f"there is no role {role!r}")
    return tuple(sorted(wanted))


async def _check_may_hold(visit: RequestContext, key: Key) -> None:
    """Nobody can give what they do not have themselves; nor take it, by way of another's key."""
    caller = visit.caller
    if caller.key is None or caller.key.id == key.id:
        return
    if key.role in (Role.SUPER_ADMIN, Role.PARTNER_ADMIN) or (key.role in ADMINS and not caller.is_admin):
        raise PermissionMissing(permission=f"… of the role {key.role}")
    if caller.is_admin:
        return
    given = await visit.house.ask(lambda reader: holder_of(reader, key))
    for permission in sorted(given.permissions - caller.permissions):
        raise PermissionMissing(permission=permission)
    # An access list may let these in where the caller is not.
    for kind, name in sorted(given.principals - caller.principals - {("api_key", key.id)}):
        if kind in ("user", "group", "role"):
            raise PermissionMissing(permission=f"… of the {kind} {name}")


async def _one(visit: RequestContext, key_id: str, scope_id: int | None) -> Key:
    document = await documents.found(visit, keys.KIND, key_id, "api key")
    key = keys.read(document.data)
    if scope_id is not None and key.scope_id != scope_id:
        raise NoSuchThing(what="api key", id=key_id)
    return key


async def _rotate(visit: RequestContext, key_id: str, scope_id: int | None, grace_s: float) -> Json:
    key = await _one(visit, key_id, scope_id)
    now = visit.house.clock.now()
    if not key.alive(now):
        raise NoSuchThing(what="api key", id=key_id)
    await _check_may_hold(visit, key)
    changed, secret = keys.rotated(key, now)
    until, actor = now + micros(grace_s), visit.caller.actor
    steps = (
        keys.kept(changed, actor),
        keys.opens(changed.digest, changed, actor),
        keys.opens(key.digest, changed, actor, until),
    )
    await visit.house.run(c.Unit(commands=steps, **visit.who))
    visit.details = {"key": key.id}
    return one({**shown(visit, changed), "secret": secret, "old_secret_until": when(until)})


async def _revoke(visit: RequestContext, key_id: str, scope_id: int | None) -> Json:
    key = await _one(visit, key_id, scope_id)
    changed = msgspec.structs.replace(key, revoked_at=key.revoked_at or visit.house.clock.now())
    await visit.house.run(keys.kept(changed, visit.caller.actor))
    visit.details = {"key": key.id}
    return one(shown(visit, changed))


async def _list(visit: RequestContext, scope_id: int | None, limit: int, cursor: str | None) -> Json:
    found = [keys.read(document.data) for document in await documents.listed(visit, keys.KIND)]
    mine = [shown(visit, key) for key in found if scope_id is None or key.scope_id == scope_id]
    return many(*cut(mine, cursor, limit))


def add(routes: APIRouter) -> None:
    scoped = "/scopes/{scope_id}/api-keys"

    @routes.post(scoped, status_code=201, openapi_extra=needs("manage", "api_key.create"))
    async def create_scope_key(visit: Visiting, scope_id: str, body: NewKey) -> Json:
        """A key for this scope alone. The secret is in this answer and nowhere else."""
        return await _make(visit, body, visit.scope.id)

    @routes.get(scoped, openapi_extra=needs("manage", "api_key.list"))
    async def list_scope_keys(
        visit: Visiting, scope_id: str, limit: Limit = 100, cursor: Cursor = None
    ) -> Json:
        """Keys of this scope, revoked ones too; never their secrets."""
        return await _list(visit, visit.scope.id, limit, cursor)

    @routes.post(scoped + "/{key_id}/rotate", openapi_extra=needs("manage", "api_key.rotate"))
    async def rotate_scope_key(
        visit: Visiting, scope_id: str, key_id: str, body: Rotation | None = None
    ) -> Json:
        """A new secret; the old one stays good for a while, so that nobody is cut off."""
        return await _rotate(visit, key_id, visit.scope.id, (body or Rotation()).grace_s)

    @routes.delete(scoped + "/{key_id}", openapi_extra=needs("manage", "api_key.revoke"))
    async def revoke_scope_key(visit: Visiting, scope_id: str, key_id: str) -> Json:
        """From now on the key opens nothing; it stays listed."""
        return await _revoke(visit, key_id, visit.scope.id)

    @routes.post("/api-keys", status_code=201, openapi_extra=needs("manage", "api_key.create", whole=True))
    async def create_key(visit: Visiting, body: NewKey) -> Json:
        """A key for all scopes of the tenant."""
        return await _make(visit, body, 0)

    @routes.get("/api-keys", openapi_extra=needs("manage", "api_key.list", whole=True))
    async def list_keys(visit: Visiting, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """Keys of the tenant and of its scopes, revoked ones too; never their secrets."""
        return await _list(visit, None, limit, cursor)

    @routes.post("/api-keys/{key_id}/rotate", openapi_extra=needs("manage", "api_key.rotate", whole=True))
    async def rotate_key(visit: Visiting, key_id: str, body: Rotation | None = None) -> Json:
        """A new secret; the old one stays good for a while, so that nobody is cut off."""
        return await _rotate(visit, key_id, None, (body or Rotation()).grace_s)

    @routes.delete("/api-keys/{key_id}", openapi_extra=needs("manage", "api_key.revoke", whole=True))
    async def revoke_key(visit: Visiting, key_id: str) -> Json:
        """From now on the key opens nothing; it stays listed."""
        return await _revoke(visit, key_id, None)
