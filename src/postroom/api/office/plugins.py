"""Plugins: code of others that runs in this process, and which of it may. Which may is a setting."""

import msgspec
from fastapi import APIRouter

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.openapi import AnswerModel, answers
from postroom.api.responses import Json

EXAMPLE = [{"name": "polite", "state": "running", "source": "file", "hooks": ["transform_outgoing"]}]


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["plugins"])

    @api.get("/api/plugins", responses=answers(list[AnswerModel], example=EXAMPLE))
    async def list_plugins(caller: Asked) -> Json:
        """All that were found or are named in `plugins.allowed`, and how they do."""
        return Json(msgspec.to_builtins(await deps.services.plugins.list_all(caller)))

    return api
