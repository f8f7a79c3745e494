"""Roles of a tenant's own, and what its users may do; keys follow at once."""

from collections.abc import Sequence

import msgspec

from postroom.errors import InvalidField
from postroom.kernel import checks
from postroom.kernel.access import permissions
from postroom.kernel.access.permissions import ROLE_PERMISSIONS, ROLES, USERS, Permission
from postroom.services import documents
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service
from postroom.services.errors import PermissionMissing


class CustomRole(msgspec.Struct, frozen=True):
    name: str
    permissions: list[str]


class Roles(Service):
    CREATE = Operation("role.create", Permission.MANAGE, 201, whole=True)
    LIST = Operation("role.list", Permission.MANAGE, whole=True)
    DELETE = Operation("role.delete", Permission.MANAGE, 204, whole=True)
    SET_USER = Operation("user.permissions", Permission.MANAGE, whole=True)

    async def create(self, caller: Caller, name: str, permissions: Sequence[str]) -> CustomRole:
        """A role of the tenant's own, for keys to carry."""
        async with self._call(caller, self.CREATE) as call:
            await call.allow()
            checks.check_name("name", name, self._context.room.limits)
            if name in ROLE_PERMISSIONS:
                raise InvalidField("name", f"{name!r} is a built-in role")
            made = CustomRole(name, _given(caller, permissions, "module_permissions"))
            await call.commit(
                documents.put(call, ROLES, name, msgspec.to_builtins(made), note={"name": name}, label=name)
            )
            return made

    async def list_all(self, caller: Caller) -> list[CustomRole]:
        """The roles of the tenant itself."""
        async with self._call(caller, self.LIST) as call:

            def find(access: Access) -> list[CustomRole]:
                found = documents.list_documents(access, ROLES)
                return [msgspec.convert(each.data, CustomRole) for each in found]

            return await call.look(find, quick=False)

    async def delete(self, caller: Caller, name: str) -> None:
        """Keys with this role lose what it gave at once."""
        async with self._call(caller, self.DELETE) as call:
            await call.look(lambda access: documents.find_document(access, ROLES, name, "role"))
            await call.commit(documents.drop(call, ROLES, name, note={"name": name}))

    async def set_user_permissions(
        self, caller: Caller, user_id: str, permissions: Sequence[str]
    ) -> list[str]:
        """What a user may do, replacing what was set before; keys assigned to the user follow at once."""
        async with self._call(caller, self.SET_USER) as call:
            await call.allow()
            checks.check_name("user_id", user_id, self._context.room.limits)
            given = _given(caller, permissions, "permissions")
            await call.commit(
                documents.put(call, USERS, user_id, {"permissions": given}, note={"user": user_id})
            )
            return given


def _given(caller: Caller, names: Sequence[str], field: str) -> list[str]:
    """Nobody can give what they do not have."""
    for name in names:
        permission = permissions.parsed(name) if isinstance(name, str) else None
        if permission is None:
            raise InvalidField(field, f"{name!r} is no permission")
        if permission not in caller.permissions:
            raise PermissionMissing(permission=permission)
    return sorted(set(names))
