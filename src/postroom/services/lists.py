"""Grants of scopes and access lists of queues: who is let in, and for what."""

import uuid
from collections.abc import Sequence

import msgspec

from postroom.errors import InvalidField
from postroom.kernel import checks
from postroom.kernel.access import acl
from postroom.kernel.access.acl import AclEntry, Principal
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import Scope
from postroom.services import documents
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service
from postroom.services.errors import PermissionMissing

GRANT_OPERATIONS = {
    verb: Operation(f"grant.{verb}", Permission.MANAGE, status)
    for verb, status in (("create", 201), ("list", 200), ("delete", 204))
}
ACL_OPERATIONS = {
    verb: Operation(f"acl.{verb}", Permission.MANAGE, status)
    for verb, status in (("create", 201), ("list", 200), ("delete", 204))
}


class AccessLists(Service):
    """Of a scope its grants; of a queue its own list, which counts instead of them."""

    async def add(
        self,
        caller: Caller,
        scope: str,
        queue: str | None = None,
        *,
        principal_type: str,
        principal_id: str,
        permissions: Sequence[str],
        expires_at: int | None = None,
    ) -> AclEntry:
        """Let somebody in. The first entry closes the place to everybody else but administrators."""
        async with self._call(caller, _operation("create", queue)) as call:

            def make(access: Access) -> tuple[Scope, str, str, AclEntry]:
                place, kind, prefix = _find_list(access, scope, queue)
                entry = AclEntry(
                    id=str(uuid.uuid4()),
                    principal_type=_principal(principal_type),
                    principal_id=principal_id,
                    permissions=_given(caller, permissions),
                    expires_at=expires_at,
                    created_at=access.now,
                )
                checks.check_name("principal_id", principal_id, self._context.room.limits)
                if expires_at is not None and expires_at <= access.now:
                    raise InvalidField("expires_at", "lies in the past")
                return place, kind, prefix, entry

            place, kind, prefix, entry = await call.look(make)
            data, note = msgspec.to_builtins(entry), {"id": entry.id}
            await call.commit(documents.put(call, kind, prefix + entry.id, data, note=note, scope=place))
            return entry

    async def list_all(self, caller: Caller, scope: str, queue: str | None = None) -> list[AclEntry]:
        """Empty: everybody with the permission is let into the scope; the grants of the scope count for the
        queue."""
        async with self._call(caller, _operation("list", queue)) as call:

            def find(access: Access) -> list[AclEntry]:
                _, kind, prefix = _find_list(access, scope, queue)
                return [acl.read(each.data) for each in documents.list_documents(access, kind, prefix)]

            return await call.look(find, quick=False)

    async def remove(self, caller: Caller, scope: str, entry_id: str, queue: str | None = None) -> None:
        """With the last entry the place is open to everybody again."""
        async with self._call(caller, _operation("delete", queue)) as call:

            def find(access: Access) -> tuple[Scope, str, str]:
                place, kind, prefix = _find_list(access, scope, queue)
                what = "grant" if queue is None else "acl entry"
                documents.find_document(access, kind, prefix + entry_id, what)
                return place, kind, prefix

            place, kind, prefix = await call.look(find)
            key, note = prefix + entry_id, {"id": entry_id}
            await call.commit(documents.drop(call, kind, key, note=note, scope=place))


def _operation(verb: str, queue: str | None) -> Operation:
    return (GRANT_OPERATIONS if queue is None else ACL_OPERATIONS)[verb]


def _find_list(access: Access, scope: str, queue: str | None) -> tuple[Scope, str, str]:
    """The scope, the kind of document, and how the keys of the entries begin."""
    if queue is None:
        place = access.scope(scope)
        return place, acl.GRANT, f"{place.id}/"
    found = access.queue(scope, queue)
    return access.find_scope(scope), acl.ENTRY, f"{found.scope_id}/{found.id}/"


def _principal(name: str) -> Principal:
    if name not in list(Principal):
        raise InvalidField("principal_type", f"is {name!r}, must be one of {', '.join(Principal)}")
    return Principal(name)


def _given(caller: Caller, names: Sequence[str]) -> tuple[Permission, ...]:
    """Nobody can give what they do not have."""
    if not names:
        raise InvalidField("permissions", "names none, at least 1 is needed")
    for name in names:
        if name not in list(Permission):
            raise InvalidField("permissions", f"{name!r} is none; known are {', '.join(Permission)}")
        if name not in caller.permissions:
            raise PermissionMissing(permission=name)
    return tuple(Permission(name) for name in sorted(set(names)))
