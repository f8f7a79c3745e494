"""Schemas by name and version; a version, once there, never changes."""

from fastapi import APIRouter

from postroom.api.queue import views
from postroom.api.queue.bodies import NewSchema
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.gate import Calling, needs
from postroom.api.responses import Json
from postroom.services.schemas import Schemas

PATH = "/scopes/{scope_id}/schemas"


def add(routes: APIRouter) -> None:
    @routes.post(PATH, status_code=201, openapi_extra=needs(Schemas.CREATE))
    async def create_schema(call: Calling, scope_id: str, body: NewSchema) -> Json:
        """Register a JSON Schema (2020-12). A queue uses it by its setting `schema`, a message by a field."""
        made = await call.services.schemas.register(
            call.caller, scope_id, body.name, body.schema_, body.version
        )
        return one(views.schema(made, call.ids), status=201)

    @routes.get(PATH, openapi_extra=needs(Schemas.LIST))
    async def list_schemas(
        call: Calling, scope_id: str, name: str | None = None, limit: Limit = 100, cursor: Cursor = None
    ) -> Json:
        """All versions of all schemas, or of one."""
        found = await call.services.schemas.list_all(call.caller, scope_id, name)
        shown = [
            {"id": f"{each.schema.name}@{each.schema.version}", **views.schema(each, call.ids)}
            for each in found
        ]
        return many(*cut(shown, cursor, limit))

    @routes.get(PATH + "/{name}/{version}", openapi_extra=needs(Schemas.READ))
    async def read_schema(call: Calling, scope_id: str, name: str, version: str) -> Json:
        """One version, or `latest`."""
        found = await call.services.schemas.read(call.caller, scope_id, name, version)
        return one(views.schema(found, call.ids))
