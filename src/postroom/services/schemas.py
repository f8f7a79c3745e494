"""Schemas by name and version; a version, once there, never changes."""

from typing import Any

import msgspec

from postroom.errors import InvalidField, SchemaNotFound
from postroom.kernel import commands as c
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import Schema
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service

LATEST = "latest"
MOST_DIGITS = 9


class ScopedSchema(msgspec.Struct, frozen=True):
    schema: Schema
    scope_id: int


def version_number(version: int | str | None) -> int | None:
    """Clients write `1.0` where we count 1, 2, 3; only whole numbers can be told apart."""
    if version is None or isinstance(version, int):
        return version
    whole, _, rest = version.partition(".")
    if not whole.isdecimal() or len(whole) > MOST_DIGITS or rest.strip("0."):
        raise InvalidField("version", f"is {version!r}, must be a whole number like 2 or 2.0")
    return int(whole)


class Schemas(Service):
    CREATE = Operation("schema.create", Permission.MANAGE, 201)
    LIST = Operation("schema.list", Permission.VIEW)
    READ = Operation("schema.read", Permission.VIEW)

    async def register(
        self,
        caller: Caller,
        scope: str,
        name: str,
        document: dict[str, Any],
        version: int | str | None = None,
    ) -> ScopedSchema:
        """Register a JSON Schema (2020-12). A queue uses it by its setting `schema`, a message by a field."""
        async with self._call(caller, self.CREATE) as call:
            found = await call.look(lambda access: access.scope(scope))
            made = await call.commit(
                c.RegisterSchema(
                    scope=found.slug,
                    name=name,
                    document=document,
                    version=version_number(version),
                    **call.who,
                )
            )
            return ScopedSchema(made, found.id)

    async def list_all(self, caller: Caller, scope: str, name: str | None = None) -> list[ScopedSchema]:
        """All versions of all schemas, or of one."""
        async with self._call(caller, self.LIST) as call:
            return await call.look(lambda access: _list(access, scope, name), quick=False)

    async def read(self, caller: Caller, scope: str, name: str, version: str) -> ScopedSchema:
        """One version, or `latest`."""
        async with self._call(caller, self.READ) as call:

            def find(access: Access) -> ScopedSchema:
                found = _list(access, scope, name)
                number = None if version == LATEST else version_number(version)
                fitting = [each for each in found if number in (None, each.schema.version)]
                if not fitting:
                    place = access.find_scope(scope)
                    raise SchemaNotFound(scope=place.slug, name=name, version=version)
                return fitting[-1]

            return await call.look(find, quick=False)


def _list(access: Access, scope: str, name: str | None) -> list[ScopedSchema]:
    place = access.scope(scope)
    return [
        ScopedSchema(schema, place.id)
        for schema in access.reader.schemas(access.tenant, place.slug)
        if name in (None, schema.name)
    ]
