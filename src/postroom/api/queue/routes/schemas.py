"""Schemas by name and version; a version, once there, never changes."""

from fastapi import APIRouter

from postroom.api.queue import views
from postroom.api.queue.access import needs
from postroom.api.queue.bodies import NewSchema
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.request_context import Visiting
from postroom.api.responses import Json
from postroom.errors import InvalidField, SchemaNotFound
from postroom.kernel import commands as c

PLACE = "/scopes/{scope_id}/schemas"
MOST_DIGITS = 9


def version_number(version: int | str | None) -> int | None:
    """Clients write `1.0` where we count 1, 2, 3; only whole numbers can be told apart."""
    if version is None or isinstance(version, int):
        return version
    whole, _, rest = version.partition(".")
    if not whole.isdecimal() or len(whole) > MOST_DIGITS or rest.strip("0."):
        raise InvalidField("version", f"is {version!r}, must be a whole number like 2 or 2.0")
    return int(whole)


def add(routes: APIRouter) -> None:
    @routes.post(PLACE, status_code=201, openapi_extra=needs("manage", "schema.create"))
    async def create_schema(visit: Visiting, scope_id: str, body: NewSchema) -> Json:
        """Register a JSON Schema (2020-12). A queue uses it by its setting `schema`, a message by a field."""
        made = await visit.house.run(
            c.RegisterSchema(
                scope=visit.scope.slug,
                name=body.name,
                document=body.schema_,
                version=version_number(body.version),
                **visit.who,
            )
        )
        return one(views.schema(made, visit.opaque, visit.scope.id), status=201)

    @routes.get(PLACE, openapi_extra=needs("view", "schema.list"))
    async def list_schemas(
        visit: Visiting, scope_id: str, name: str | None = None, limit: Limit = 100, cursor: Cursor = None
    ) -> Json:
        """All versions of all schemas, or of one."""
        found = await visit.house.ask(lambda reader: reader.schemas(visit.tenant, visit.scope.slug))
        shown = [
            {"id": f"{schema.name}@{schema.version}", **views.schema(schema, visit.opaque, visit.scope.id)}
            for schema in found
            if name in (None, schema.name)
        ]
        return many(*cut(shown, cursor, limit))

    @routes.get(PLACE + "/{name}/{version}", openapi_extra=needs("view", "schema.read"))
    async def read_schema(visit: Visiting, scope_id: str, name: str, version: str) -> Json:
        """One version, or `latest`."""
        found = await visit.house.ask(lambda reader: reader.schemas(visit.tenant, visit.scope.slug))
        number = None if version == "latest" else version_number(version)
        fitting = [each for each in found if each.name == name and number in (None, each.version)]
        if not fitting:
            raise SchemaNotFound(scope=visit.scope.slug, name=name, version=version)
        return one(views.schema(fitting[-1], visit.opaque, visit.scope.id))
