"""What keys, roles and access lists say, remembered until one of them changes."""

from typing import Any

import msgspec

from postroom.kernel.access import acl, keys, permissions
from postroom.kernel.access.acl import AclEntry
from postroom.kernel.access.keys import Key
from postroom.kernel.access.permissions import ROLE_PERMISSIONS, ROLES, TENANTS, USERS, Permission
from postroom.kernel.access.version import read_version
from postroom.kernel.ports import MANY
from postroom.kernel.reader import Reader
from postroom.services import callers
from postroom.services.callers import Caller

MOST_KEYS = 10_000


class KnownKey(msgspec.Struct, frozen=True):
    """The holder of a key, until when this secret opens it, and what is set for its tenant."""

    caller: Caller
    until: int | None
    tenant: dict[str, Any]


class Rights:
    """Everything of one version; filled as it is asked for."""

    def __init__(self, version: int) -> None:
        self.version = version
        self._entries: dict[tuple[str, str, str], tuple[AclEntry, ...]] = {}
        self._keys: dict[str, KnownKey | None] = {}
        self._tenants: dict[str, dict[str, Any]] = {}

    def entries(self, reader: Reader, tenant: str, kind: str, prefix: str) -> tuple[AclEntry, ...]:
        found = self._entries.get((tenant, kind, prefix))
        if found is None:
            documents = reader.documents(tenant, kind, prefix, "", MANY)
            found = tuple(acl.read(document.data) for document in documents)
            self._entries[tenant, kind, prefix] = found
        return found

    def queue_lists(self, reader: Reader, tenant: str, scope_id: int) -> dict[int, list[AclEntry]]:
        """The lists of a scope's queues, of those that have one."""
        found: dict[int, list[AclEntry]] = {}
        for document in reader.documents(tenant, acl.ENTRY, f"{scope_id}/", "", MANY):
            _, queue_id, _ = document.key.split("/", 2)
            found.setdefault(int(queue_id), []).append(acl.read(document.data))
        return found

    def tenant(self, reader: Reader, tenant: str) -> dict[str, Any]:
        """What is set for a tenant; nothing for one that nobody has made."""
        found = self._tenants.get(tenant)
        if found is None:
            document = reader.document("", TENANTS, tenant)
            found = document.data if document is not None and not document.gone else {}
            self._tenants[tenant] = found
        return found

    def key(self, reader: Reader, secret: str) -> KnownKey | None:
        """Whose key a secret opens, alive or not; None when it opens none."""
        if not secret.startswith(keys.PREFIX):
            return None
        digest = keys.hashed(secret)
        if digest not in self._keys:
            if len(self._keys) >= MOST_KEYS:
                self._keys.clear()
            self._keys[digest] = self._find_key(reader, digest)
        return self._keys[digest]

    def _find_key(self, reader: Reader, digest: str) -> KnownKey | None:
        opens = reader.document(keys.NOBODY, keys.HASHES, digest)
        if opens is None or opens.gone:
            return None
        found = reader.document(opens.data["tenant"], keys.KIND, opens.data["id"])
        if found is None or found.gone:
            return None
        holder = holder_of(reader, keys.read(found.data))
        return KnownKey(holder, opens.data.get("until"), self.tenant(reader, holder.tenant))


class RightsCache:
    def __init__(self) -> None:
        self._current = Rights(-1)

    def at(self, reader: Reader) -> Rights:
        """The rights as of this reader's snapshot."""
        version = read_version(reader)
        if self._current.version != version:
            self._current = Rights(version)
        return self._current


def holder_of(reader: Reader, key: Key) -> Caller:
    return callers.key_holder(key, _permissions_of(reader, key))


def _permissions_of(reader: Reader, key: Key) -> frozenset[Permission]:
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
    known = [permissions.parsed(each) for each in found.data.get("permissions", [])]
    return frozenset(each for each in known if each is not None)
