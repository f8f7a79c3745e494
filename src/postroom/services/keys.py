"""API keys of a scope or of the whole tenant: made (the secret is shown once), rotated, revoked."""

import uuid
from collections.abc import Sequence

import msgspec

from postroom.clock import micros
from postroom.errors import InvalidField
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.access import keys, permissions
from postroom.kernel.access.keys import Key
from postroom.kernel.access.permissions import ADMINS, ROLE_PERMISSIONS, Permission, Role
from postroom.kernel.limits import Limits
from postroom.services import documents
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service
from postroom.services.errors import NoSuchThing, PermissionMissing
from postroom.services.rights import holder_of

GRACE_S = 3600.0
MOST_GRACE_S = 30 * 24 * 3600.0


class KeyDraft(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a key that is to be made."""

    name: str
    permissions: Sequence[str] = ()
    role: str | None = None
    user_id: str | None = None
    groups: Sequence[str] = ()
    actor_type: str = "user"
    partner: str | None = None
    """For partner administrators; only the owner sets it."""
    expires_at: int | None = None


class ScopedKey(msgspec.Struct, frozen=True):
    """A key with the name of the scope it is bound to."""

    key: Key
    scope: str | None


class IssuedKey(msgspec.Struct, frozen=True):
    """A key with its new secret, which is nowhere else. The secret it had before is good for a while."""

    key: Key
    scope: str | None
    secret: str
    old_secret_until: int | None = None


class Keys(Service):
    """With a scope, its own keys alone; without, those of the tenant and of all its scopes."""

    CREATE = Operation("api_key.create", Permission.MANAGE, 201)
    LIST = Operation("api_key.list", Permission.MANAGE)
    ROTATE = Operation("api_key.rotate", Permission.MANAGE)
    REVOKE = Operation("api_key.revoke", Permission.MANAGE)

    async def create(self, caller: Caller, draft: KeyDraft, *, scope: str | None = None) -> IssuedKey:
        """The secret is in this answer and nowhere else."""
        async with self._call(caller, whole(self.CREATE, scope)) as call:

            def make(access: Access) -> IssuedKey:
                place = access.scope(scope) if scope is not None else None
                made, secret = keys.new_key(
                    key_id=str(uuid.uuid4()),
                    tenant=access.tenant,
                    name=draft.name,
                    now=access.now,
                    permissions=_check_draft(access, draft, self._context.room.limits),
                    role=draft.role,
                    scope_id=place.id if place is not None else 0,
                    user_id=draft.user_id,
                    groups=tuple(draft.groups),
                    partner=draft.partner if caller.is_owner else None,
                    actor_type=draft.actor_type,
                    created_by=caller.actor,
                    expires_at=draft.expires_at,
                )
                _check_may_hold(access, made)
                return IssuedKey(made, place.slug if place is not None else None, secret)

            issued = await call.look(make)
            key = issued.key
            steps = (keys.kept(key, caller.actor), keys.opens(key.digest, key, caller.actor))
            await call.commit(c.Unit(commands=steps, **call.who), key=key.id, name=key.name)
            return issued

    async def list_all(self, caller: Caller, *, scope: str | None = None) -> list[ScopedKey]:
        """Revoked ones too; never their secrets."""
        async with self._call(caller, whole(self.LIST, scope)) as call:

            def find(access: Access) -> list[ScopedKey]:
                place = access.scope(scope) if scope is not None else None
                names = {each.id: each.slug for each in access.reader.scopes(access.tenant)}
                found = [keys.read(each.data) for each in documents.list_documents(access, keys.KIND)]
                return [
                    ScopedKey(key, names.get(key.scope_id))
                    for key in found
                    if place is None or key.scope_id == place.id
                ]

            return await call.look(find, quick=False)

    async def rotate(
        self, caller: Caller, key_id: str, *, scope: str | None = None, grace_s: float = GRACE_S
    ) -> IssuedKey:
        """A new secret; the old one stays good for a while, so that nobody is cut off."""
        async with self._call(caller, whole(self.ROTATE, scope)) as call:

            def find(access: Access) -> ScopedKey:
                found = _find(access, key_id, scope)
                checks.check_seconds("grace_s", grace_s, least=0, most=MOST_GRACE_S)
                if not found.key.alive(access.now):
                    raise NoSuchThing(what="api key", id=key_id)
                _check_may_hold(access, found.key)
                return found

            found, actor = await call.look(find), caller.actor
            now = self._now()
            changed, secret = keys.rotated(found.key, now)
            until = now + micros(grace_s)
            steps = (
                keys.kept(changed, actor),
                keys.opens(changed.digest, changed, actor),
                keys.opens(found.key.digest, changed, actor, until),
            )
            await call.commit(c.Unit(commands=steps, **call.who), key=changed.id)
            return IssuedKey(changed, found.scope, secret, until)

    async def revoke(self, caller: Caller, key_id: str, *, scope: str | None = None) -> ScopedKey:
        """From now on the key opens nothing; it stays listed."""
        async with self._call(caller, whole(self.REVOKE, scope)) as call:
            found = await call.look(lambda access: _find(access, key_id, scope))
            key = msgspec.structs.replace(found.key, revoked_at=found.key.revoked_at or self._now())
            await call.commit(keys.kept(key, caller.actor), key=key.id)
            return ScopedKey(key, found.scope)


def whole(operation: Operation, scope: str | None) -> Operation:
    """What is not about one scope is not for keys that are bound to one."""
    return operation if scope is not None else msgspec.structs.replace(operation, whole=True)


def _find(access: Access, key_id: str, scope: str | None) -> ScopedKey:
    place = access.scope(scope) if scope is not None else None
    key = keys.read(documents.find_document(access, keys.KIND, key_id, "api key").data)
    if place is not None and key.scope_id != place.id:
        raise NoSuchThing(what="api key", id=key_id)
    names = {each.id: each.slug for each in access.reader.scopes(access.tenant)}
    return ScopedKey(key, names.get(key.scope_id))


def _check_draft(access: Access, draft: KeyDraft, limits: Limits) -> tuple[Permission, ...]:
    """The permissions it names, when all of it makes sense."""
    checks.check_name("name", draft.name, limits)
    checks.check_name("actor_type", draft.actor_type, limits)
    for field in ("role", "user_id", "partner"):
        checks.check_text(field, getattr(draft, field), limits)
    wanted: set[Permission] = set()
    for name in draft.permissions:
        permission = permissions.parsed(name) if isinstance(name, str) else None
        if permission is None:
            known = ", ".join(permissions.PREFIX + each for each in Permission)
            raise InvalidField("permissions", f"{name!r} is none of {known}")
        wanted.add(permission)
    if draft.role is not None and draft.role not in ROLE_PERMISSIONS:
        found = access.reader.document(access.tenant, permissions.ROLES, draft.role)
        if found is None or found.gone:
            raise InvalidField("role", f"there is no role {draft.role!r}")
    if draft.expires_at is not None and draft.expires_at <= access.now:
        raise InvalidField("expires_at", "lies in the past")
    return tuple(sorted(wanted))


def _check_may_hold(access: Access, key: Key) -> None:
    """Nobody can give what they do not have themselves; nor take it, by way of another's key."""
    caller = access.caller
    if caller.is_owner or (caller.key is not None and caller.key.id == key.id):
        return
    if key.role in (Role.SUPER_ADMIN, Role.PARTNER_ADMIN) or (key.role in ADMINS and not caller.is_admin):
        raise PermissionMissing(permission=f"… of the role {key.role}")
    if caller.is_admin:
        return
    given = holder_of(access.reader, key)
    for permission in sorted(given.permissions - caller.permissions):
        raise PermissionMissing(permission=permission)
    # An access list may let these in where the caller is not.
    for kind, name in sorted(given.principals - caller.principals - {("api_key", key.id)}):
        if kind in ("user", "group", "role"):
            raise PermissionMissing(permission=f"… of the {kind} {name}")
