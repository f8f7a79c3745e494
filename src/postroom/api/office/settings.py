"""The settings, shown without secrets; a mask that comes back never takes the place of a secret."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Body as From

from postroom.api.dependencies import Dependencies
from postroom.api.error_responses import needs
from postroom.api.openapi import AnswerModel, Id, ObjectBody, Ok, Word, answers
from postroom.api.responses import OK, Json
from postroom.errors import InvalidField, NotFound
from postroom.settings import Settings, check_id
from postroom.settings.model import parse
from postroom.settings.secrets import masked

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


HARNESSES = ("claude", "codex", "api")


def _unnamed(before: Any) -> dict[str, Any]:
    """What other clients wrote of a server and this one knows nothing of. A model left out is none."""
    known = ProviderFields.model_fields.keys() - {"wire"}
    return {name: value for name, value in (before or {}).items() if name not in known}


def _make_workspace(settings: Settings) -> None:
    """Before anything is written: settings with a folder that cannot be are of no use."""
    try:
        settings.workspace_path().mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise InvalidField("workspace.path", f"cannot be made a folder: {reason}") from None


class ProviderNotFound(NotFound):
    """custom provider '{provider}' not found"""


def routes(front: Dependencies) -> APIRouter:
    api = APIRouter(tags=["settings"])
    file = front.settings

    @api.get("/api/settings", responses=answers(AnswerModel))
    async def get_settings() -> Json:
        """Everything that is set; secrets show as `********`."""
        return Json(await asyncio.to_thread(file.masked))

    @api.put("/api/settings", responses=answers(Ok, 400, 409))
    async def put_settings(document: Document) -> Json:
        """Replace whole top-level fields; a null removes one. Others stay."""
        await asyncio.to_thread(file.merge, document)
        await front.staff.apply()
        return Json({"ok": True, "settings": await asyncio.to_thread(file.masked)})

    @api.post("/api/setup", responses=answers(Ok, 400, 409))
    async def setup(document: Document) -> Json:
        """Replace all settings."""
        await asyncio.to_thread(_make_workspace, parse(document, file.path))
        await asyncio.to_thread(file.replace, document)
        await front.staff.apply()
        return Json({"ok": True, "settings": await asyncio.to_thread(file.masked)})

    @api.get("/api/custom-providers", responses=answers(dict[str, AnswerModel]))
    async def list_providers() -> Json:
        """Servers of one's own; keys show as `********`."""
        return Json((await asyncio.to_thread(file.masked)).get("custom_providers") or {})

    @api.put(
        "/api/custom-providers/{id}",
        responses=answers(Ok, 400),
        openapi_extra=needs(
            "name, harness, base_url, and api_key are required", "name", "harness", "base_url", "api_key"
        ),
    )
    async def put_provider(id: Id, fields: ProviderFields) -> Json:  # noqa: A002
        """Add a server, or change one."""
        check_id("custom_providers", id)
        if fields.harness not in HARNESSES:
            message = 'harness must be "claude" or "codex"'  # as clients know it; ours is one more
            return Json({"error": message, "code": "VALIDATION_ERROR"}, status_code=400)
        given = fields.model_dump(exclude_none=True)

        def change(document: dict[str, Any]) -> None:
            providers = document.setdefault("custom_providers", {})
            providers[id] = {**_unnamed(providers.get(id)), **given}

        await asyncio.to_thread(file.update, change)
        await front.staff.apply()
        return Json({"ok": True, "provider": masked(given)})

    @api.delete("/api/custom-providers/{id}", responses=answers(Ok, 404))
    async def delete_provider(id: Id) -> Json:  # noqa: A002
        """Remove a server."""

        def change(document: dict[str, Any]) -> None:
            if id not in (document.get("custom_providers") or {}):
                raise ProviderNotFound(provider=id)
            del document["custom_providers"][id]

        await asyncio.to_thread(file.update, change)
        await front.staff.apply()
        return Json(OK)

    return api
