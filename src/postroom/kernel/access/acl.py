"""Grants of scopes and entries of queues: they narrow who sees a place and what they may do there.

A place without entries is open to everyone in the tenant who holds the permission. As soon as there is one,
only those it names pass, and administrators. Entries of a queue count instead of the scope's.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec

from postroom.kernel.access.permissions import Permission

GRANT = "grant"
ENTRY = "acl"


class Principal(StrEnum):
    USER = "user"
    GROUP = "group"
    ROLE = "role"
    API_KEY = "api_key"
    AGENT = "agent"


class AclEntry(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    principal_type: Principal
    principal_id: str
    permissions: tuple[Permission, ...]
    expires_at: int | None = None
    created_at: int = 0


class AccessVerdict(StrEnum):
    ALLOWED = "allowed"
    REFUSED = "refused"
    HIDDEN = "hidden"


def read(data: dict[str, Any]) -> AclEntry:
    return msgspec.convert(data, AclEntry)


def judge(
    entries: Iterable[AclEntry], principals: frozenset[tuple[str, str]], wanted: Permission, now: int
) -> AccessVerdict:
    """What the entries of one place say. One that has expired names nobody, but keeps the place closed."""
    named = granted = False
    some = False
    for entry in entries:
        some = True
        if (entry.principal_type, entry.principal_id) not in principals:
            continue
        if entry.expires_at is not None and entry.expires_at <= now:
            continue
        named = True
        granted = granted or wanted in entry.permissions
    if not some or granted:
        return AccessVerdict.ALLOWED
    return AccessVerdict.REFUSED if named else AccessVerdict.HIDDEN
