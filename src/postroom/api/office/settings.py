"""The settings, shown without secrets; a mask that comes back never takes the place of a secret."""

from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Body as From

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.error_responses import needs
from postroom.api.openapi import AnswerModel, Id, ObjectBody, Ok, Word, answers
from postroom.api.responses import OK, Json

Document = Annotated[
    dict[str, Any], From(openapi_examples={"one field": {"value": {"default_agent": "lead"}}})
]


class ProviderFields(ObjectBody):
    name: Word
    harness: Word
    base_url: Word
    api_key: Word
    model: str | None = None
    wire: Word | None = None


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["settings"])
    settings, providers = deps.services.settings, deps.services.providers

    @api.get("/api/settings", responses=answers(AnswerModel))
    async def get_settings(caller: Asked) -> Json:
        """Everything that is set; secrets show as `********`."""
        return Json(await settings.show(caller))

    @api.put("/api/settings", responses=answers(Ok, 400, 409))
    async def put_settings(caller: Asked, document: Document) -> Json:
        """Replace whole top-level fields; a null removes one. Others stay."""
        return Json({"ok": True, "settings": await settings.merge(caller, document)})

    @api.post("/api/setup", responses=answers(Ok, 400, 409))
    async def setup(caller: Asked, document: Document) -> Json:
        """Replace what TinyAGI's settings have. Others (`api`, `limits`, …) stay unless they are named."""
        return Json({"ok": True, "settings": await settings.replace(caller, document)})

    @api.get("/api/custom-providers", responses=answers(dict[str, AnswerModel]))
    async def list_providers(caller: Asked) -> Json:
        """Servers of one's own; keys show as `********`."""
        return Json(await providers.list_custom(caller))

    @api.put(
        "/api/custom-providers/{id}",
        responses=answers(Ok, 400),
        openapi_extra=needs(
            "name, harness, base_url, and api_key are required", "name", "harness", "base_url", "api_key"
        ),
    )
    async def put_provider(caller: Asked, id: Id, fields: ProviderFields) -> Json:  # noqa: A002
        """Add a server, or change one."""
        provider = await providers.put_custom(caller, id, fields.model_dump(exclude_none=True))
        return Json({"ok": True, "provider": provider})

    @api.delete("/api/custom-providers/{id}", responses=answers(Ok, 404))
    async def delete_provider(caller: Asked, id: Id) -> Json:  # noqa: A002
        """Remove a server, also one that an agent works with: clients of this API rely on it."""
        await providers.remove_custom(caller, id, even_in_use=True)
        return Json(OK)

    return api
