"""Trust between scopes of one tenant: whether one may route or publish into another."""

import uuid
from collections.abc import Sequence
from typing import Any, get_args

import msgspec

from postroom.errors import InvalidField, ScopeNotFound
from postroom.kernel import commands as c
from postroom.kernel.access import trust
from postroom.kernel.access.acl import AccessVerdict
from postroom.kernel.access.permissions import Permission
from postroom.kernel.access.trust import Crossing, Trust
from postroom.kernel.model import Scope
from postroom.services import documents
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service, ServiceCall

CROSSINGS: tuple[Crossing, ...] = get_args(Crossing)


class Trusts(Service):
    CREATE = Operation("trust.create", Permission.MANAGE, 201, whole=True)
    LIST = Operation("trust.list", Permission.MANAGE)
    UPDATE = Operation("trust.update", Permission.MANAGE, whole=True)
    DELETE = Operation("trust.delete", Permission.MANAGE, 204, whole=True)

    async def create(
        self, caller: Caller, scope: str, target: str, crossings: Sequence[str], *, enabled: bool = True
    ) -> Trust:
        """Let this scope route or publish into another one of the tenant."""
        async with self._call(caller, self.CREATE) as call:

            def make(access: Access) -> tuple[Scope, Scope, Trust]:
                source = access.scope(scope)
                other = access.find_scope(target)
                if access.verdict(other, None, Permission.VIEW) is AccessVerdict.HIDDEN:
                    raise ScopeNotFound(scope=target)
                if other.id == source.id:
                    raise InvalidField("target_scope_id", "is the scope itself, which needs no trust")
                made = Trust(
                    id=str(uuid.uuid4()),
                    source_id=source.id,
                    target_id=other.id,
                    permissions=_crossings(crossings),
                    enabled=enabled,
                    created_at=access.now,
                )
                return source, other, made

            source, other, made = await call.look(make)
            note = {"id": made.id, "target": other.slug}
            await call.commit(_put(call, source, made, note))
            return made

    async def list_all(self, caller: Caller, scope: str) -> list[Trust]:
        """Scopes into which this one may route or publish."""
        async with self._call(caller, self.LIST) as call:

            def find(access: Access) -> list[Trust]:
                place = access.scope(scope)
                found = documents.list_documents(access, trust.KIND, f"{place.id}/")
                return [trust.read(each.data) for each in found]

            return await call.look(find, quick=False)

    async def switch(self, caller: Caller, scope: str, trust_id: str, enabled: bool) -> Trust:
        """Switch a trust off or on."""
        async with self._call(caller, self.UPDATE) as call:
            place, found = await call.look(lambda access: _find(access, scope, trust_id))
            changed = msgspec.structs.replace(found, enabled=enabled)
            await call.commit(_put(call, place, changed, {"id": trust_id, "enabled": enabled}))
            return changed

    async def delete(self, caller: Caller, scope: str, trust_id: str) -> None:
        """Takes effect at once."""
        async with self._call(caller, self.DELETE) as call:
            place, _ = await call.look(lambda access: _find(access, scope, trust_id))
            key, note = f"{place.id}/{trust_id}", {"id": trust_id}
            await call.commit(documents.drop(call, trust.KIND, key, note=note, scope=place))


def _put(call: ServiceCall, scope: Scope, made: Trust, note: dict[str, Any]) -> c.Command:
    key = f"{scope.id}/{made.id}"
    return documents.put(call, trust.KIND, key, msgspec.to_builtins(made), note=note, scope=scope)


def _find(access: Access, scope: str, trust_id: str) -> tuple[Scope, Trust]:
    place = access.scope(scope)
    found = documents.find_document(access, trust.KIND, f"{place.id}/{trust_id}", "trust")
    return place, trust.read(found.data)


def _crossings(names: Sequence[str]) -> tuple[Crossing, ...]:
    if not names:
        raise InvalidField("permissions", "names none, at least 1 is needed")
    for name in names:
        if name not in CROSSINGS:
            raise InvalidField("permissions", f"{name!r} is none; known are {', '.join(CROSSINGS)}")
    return tuple(each for each in CROSSINGS if each in names)
