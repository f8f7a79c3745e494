"""Review patterns of a scope: registered by name and version, shown with parameters, deleted."""

from typing import Any

import msgspec

from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import Document
from postroom.kernel.reviews import patterns
from postroom.kernel.templates import filled, holes
from postroom.services import documents
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service


class ReviewPattern(msgspec.Struct, frozen=True):
    scope_id: int
    name: str
    version: str
    spec: dict[str, Any]
    created_at: int

    @property
    def id(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def parameters(self) -> list[str]:
        return sorted(holes(self.spec))


class Patterns(Service):
    CREATE = Operation("pattern.create", Permission.MANAGE, 201)
    LIST = Operation("pattern.list", Permission.VIEW)
    READ = Operation("pattern.read", Permission.VIEW)
    PREVIEW = Operation("pattern.preview", Permission.VIEW)
    DELETE = Operation("pattern.delete", Permission.MANAGE, 204)

    async def create(
        self, caller: Caller, scope: str, name: str, version: str, spec: dict[str, Any]
    ) -> ReviewPattern:
        """Register a version of a pattern. It never changes; open reviews keep the one they came with."""
        async with self._call(caller, self.CREATE) as call:
            place = await call.look(lambda access: access.scope(scope))
            patterns.check_pattern(name, version, spec)
            made: Document = await call.commit(
                documents.put(
                    call,
                    patterns.KIND,
                    patterns.key_of(place.id, name, version),
                    {"name": name, "version": version, "spec": spec},
                    note={"name": name, "version": version},
                    label=f"{name} {version}",
                    scope=place,
                )
            )
            return _pattern(place.id, made)

    async def list_all(self, caller: Caller, scope: str) -> list[ReviewPattern]:
        """All versions of all patterns."""
        async with self._call(caller, self.LIST) as call:

            def find(access: Access) -> list[ReviewPattern]:
                place = access.scope(scope)
                found = documents.list_documents(access, patterns.KIND, f"{place.id}/")
                return [_pattern(place.id, each) for each in found]

            return await call.look(find, quick=False)

    async def read(self, caller: Caller, scope: str, pattern_id: str) -> ReviewPattern:
        """By `name@version`, or the newest by its name alone."""
        async with self._call(caller, self.READ) as call:
            return await call.look(lambda access: _find(access, scope, pattern_id))

    async def preview(
        self, caller: Caller, scope: str, pattern_id: str, parameters: dict[str, Any]
    ) -> dict[str, Any]:
        """The spec as a reviewer would get it with these parameters."""
        async with self._call(caller, self.PREVIEW) as call:
            found = await call.look(lambda access: _find(access, scope, pattern_id))
            return filled(found.spec, parameters)

    async def delete(self, caller: Caller, scope: str, pattern_id: str) -> None:
        """One version; reviews that were made with it are not touched."""
        async with self._call(caller, self.DELETE) as call:

            def find(access: Access) -> tuple[Any, ReviewPattern]:
                return access.scope(scope), _find(access, scope, pattern_id)

            place, found = await call.look(find)
            key = patterns.key_of(place.id, found.name, found.version)
            note = {"name": found.name, "version": found.version}
            await call.commit(documents.drop(call, patterns.KIND, key, note=note, scope=place))


def _pattern(scope_id: int, document: Document) -> ReviewPattern:
    data = document.data
    return ReviewPattern(scope_id, data["name"], data["version"], data["spec"], document.created_at)


def _find(access: Access, scope: str, pattern_id: str) -> ReviewPattern:
    place = access.scope(scope)
    name, _, version = pattern_id.partition("@")
    return _pattern(place.id, patterns.find(access.reader, access.tenant, place.id, name, version or None))
