"""API keys of a scope or of the whole tenant: made (the secret is shown once), rotated, revoked."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from postroom.api.queue import upkeep_views as views
from postroom.api.queue.bodies import Moment, Number, PermissionWord, RequestBody, Text, moment
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.gate import Calling, RouteCall, needs
from postroom.api.queue.views import when
from postroom.api.responses import Json
from postroom.services.keys import GRACE_S, MOST_GRACE_S, KeyDraft, Keys, whole

SCOPED = "/scopes/{scope_id}/api-keys"
PATH = "/api-keys"


class NewKey(RequestBody):
    name: Text
    permissions: list[PermissionWord] = Field(default_factory=list, examples=[["view", "publish"]])
    role: Text | None = None
    expires_at: Moment | None = None
    assigned_user_id: Text | None = None
    groups: list[str] = Field(default_factory=list)
    actor_type: Text = "user"
    partner: Text | None = Field(default=None, description="For partner administrators; the owner sets it")

    def draft(self) -> KeyDraft:
        return KeyDraft(
            name=self.name,
            permissions=self.permissions,
            role=self.role,
            user_id=self.assigned_user_id,
            groups=self.groups,
            actor_type=self.actor_type,
            partner=self.partner,
            expires_at=moment(self.expires_at),
        )


class Rotation(RequestBody):
    grace_s: Annotated[Number, Field(ge=0, le=MOST_GRACE_S)] = GRACE_S


async def _create(call: RouteCall, scope: str | None, body: NewKey) -> Json:
    made = await call.services.keys.create(call.caller, body.draft(), scope=scope)
    return one({**views.key(made.key, call.ids), "secret": made.secret}, status=201)


async def _list(call: RouteCall, scope: str | None, limit: int, cursor: str | None) -> Json:
    found = await call.services.keys.list_all(call.caller, scope=scope)
    return many(*cut([views.key(each.key, call.ids) for each in found], cursor, limit))


async def _rotate(call: RouteCall, scope: str | None, key_id: str, body: Rotation | None) -> Json:
    grace = (body or Rotation()).grace_s
    made = await call.services.keys.rotate(call.caller, key_id, scope=scope, grace_s=grace)
    until = when(made.old_secret_until)
    return one({**views.key(made.key, call.ids), "secret": made.secret, "old_secret_until": until})


async def _revoke(call: RouteCall, scope: str | None, key_id: str) -> Json:
    found = await call.services.keys.revoke(call.caller, key_id, scope=scope)
    return one(views.key(found.key, call.ids))


def add(routes: APIRouter) -> None:
    _add_scoped(routes)
    _add_whole(routes)


def _add_scoped(routes: APIRouter) -> None:
    @routes.post(SCOPED, status_code=201, openapi_extra=needs(Keys.CREATE))
    async def create_scope_key(call: Calling, scope_id: str, body: NewKey) -> Json:
        """A key for this scope alone. The secret is in this answer and nowhere else."""
        return await _create(call, scope_id, body)

    @routes.get(SCOPED, openapi_extra=needs(Keys.LIST))
    async def list_scope_keys(
        call: Calling, scope_id: str, limit: Limit = 100, cursor: Cursor = None
    ) -> Json:
        """Keys of this scope, revoked ones too; never their secrets."""
        return await _list(call, scope_id, limit, cursor)

    @routes.post(SCOPED + "/{key_id}/rotate", openapi_extra=needs(Keys.ROTATE))
    async def rotate_scope_key(
        call: Calling, scope_id: str, key_id: str, body: Rotation | None = None
    ) -> Json:
        """A new secret; the old one stays good for a while, so that nobody is cut off."""
        return await _rotate(call, scope_id, key_id, body)

    @routes.delete(SCOPED + "/{key_id}", openapi_extra=needs(Keys.REVOKE))
    async def revoke_scope_key(call: Calling, scope_id: str, key_id: str) -> Json:
        """From now on the key opens nothing; it stays listed."""
        return await _revoke(call, scope_id, key_id)


def _add_whole(routes: APIRouter) -> None:
    @routes.post(PATH, status_code=201, openapi_extra=needs(whole(Keys.CREATE, None)))
    async def create_key(call: Calling, body: NewKey) -> Json:
        """A key for all scopes of the tenant."""
        return await _create(call, None, body)

    @routes.get(PATH, openapi_extra=needs(whole(Keys.LIST, None)))
    async def list_keys(call: Calling, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """Keys of the tenant and of its scopes, revoked ones too; never their secrets."""
        return await _list(call, None, limit, cursor)

    @routes.post(PATH + "/{key_id}/rotate", openapi_extra=needs(whole(Keys.ROTATE, None)))
    async def rotate_key(call: Calling, key_id: str, body: Rotation | None = None) -> Json:
        """A new secret; the old one stays good for a while, so that nobody is cut off."""
        return await _rotate(call, None, key_id, body)

    @routes.delete(PATH + "/{key_id}", openapi_extra=needs(whole(Keys.REVOKE, None)))
    async def revoke_key(call: Calling, key_id: str) -> Json:
        """From now on the key opens nothing; it stays listed."""
        return await _revoke(call, None, key_id)
