"""One number that moves whenever keys, roles, lists, trusts or tenants change.

Whoever remembers what they said reads it first, in the same snapshot: the same number, the same rights.
"""

from typing import Protocol

from postroom.kernel.access import acl, keys, permissions, trust
from postroom.kernel.model import Document

KIND = "access_version"
KEY = "version"
# It counts the changes of all tenants, so it belongs to none.
TENANT = keys.NOBODY
COUNTED = frozenset(
    {
        keys.KIND,
        keys.HASHES,
        permissions.ROLES,
        permissions.USERS,
        permissions.TENANTS,
        acl.GRANT,
        acl.ENTRY,
        trust.KIND,
    }
)


class VersionReads(Protocol):
    def document(self, tenant: str, kind: str, key: str) -> Document | None: ...


class VersionWrites(VersionReads, Protocol):
    def put_document(self, tenant: str, document: Document) -> None: ...


def read_version(reader: VersionReads) -> int:
    found = reader.document(TENANT, KIND, KEY)
    return 0 if found is None else found.version


def move_version(session: VersionWrites, now: int) -> None:
    before = session.document(TENANT, KIND, KEY)
    session.put_document(TENANT, Document.next(before, KIND, KEY, {}, now))
