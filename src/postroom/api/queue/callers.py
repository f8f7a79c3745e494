"""Who calls: the owner of the house, or the holder of a key, with what they may do."""

from typing import Any

import msgspec

from postroom.kernel.access import keys, permissions
from postroom.kernel.access.keys import Key
from postroom.kernel.access.permissions import ADMINS, ALL, ROLE_PERMISSIONS, Permission, Role
from postroom.kernel.ports import Reader

ROLES = "custom_role"
USERS = "user_permissions"
TENANTS = "tenant"


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    tenant: str
    type: str
    id: str
    permissions: frozenset[Permission]
    role: str | None = None
    key: Key | None = None
    user_id: str | None = None
    source_type: str = "user"

    @property
    def actor(self) -> str:
        """As the ledger and claims name them."""
        return f"{self.type}:{self.id}"

    @property
    def is_owner(self) -> bool:
        return self.key is None

    @property
    def is_admin(self) -> bool:
        return self.key is None or self.role in ADMINS

    @property
    def principals(self) -> frozenset[tuple[str, str]]:
        """Everything an access list may know them as."""
        found = {(self.type, self.id)}
        if self.role is not None:
            found.add(("role", self.role))
        if self.user_id is not None:
            found.add(("user", self.user_id))
        if self.key is not None:
            found |= {("group", group) for group in self.key.groups}
        return frozenset(found)


def owner(tenant: str) -> Caller:
    return Caller(tenant=tenant, type="house", id="owner", permissions=ALL, role=Role.SUPER_ADMIN)


def of_key(reader: Reader, key: Key, tenant: str) -> Caller:
    return Caller(
        tenant=tenant,
        type="api_key",
        id=key.id,
        permissions=_allowed(reader, key),
        role=key.role,
        key=key,
        user_id=key.user_id,
        source_type=key.actor_type,
    )


def _allowed(reader: Reader, key: Key) -> frozenset[Permission]:
    """Of the key itself and its role; a key that says neither has what its user has at the moment."""
    allowed = frozenset(key.permissions)
    if key.role is not None:
        allowed |= ROLE_PERMISSIONS.get(key.role) or _listed(reader, key.tenant, ROLES, key.role)
    elif not key.permissions and key.user_id is not None:
        allowed = _listed(reader, key.tenant, USERS, key.user_id)
    return allowed


def _listed(reader: Reader, tenant: str, kind: str, name: str) -> frozenset[Permission]:
    found = reader.document(tenant, kind, name)
    if found is None or found.gone:
        return frozenset()
    known: list[Any] = [permissions.parsed(each) for each in found.data.get("permissions", [])]
    return frozenset(each for each in known if each is not None)


def find_key(reader: Reader, secret: str, now: int) -> Key | None:
    """The key this secret opens with, alive or not; None when no key has it (any more)."""
    if not secret.startswith(keys.PREFIX):
        return None
    found = reader.document(keys.NOBODY, keys.HASHES, keys.hashed(secret))
    if found is None or found.gone:
        return None
    until = found.data.get("until")
    if until is not None and until <= now:
        return None
    kept = reader.document(found.data["tenant"], keys.KIND, found.data["id"])
    return keys.read(kept.data) if kept is not None and not kept.gone else None
