"""Taking over an office that another program kept on this machine. For the owner only."""

from typing import Literal

import msgspec
from fastapi import APIRouter
from pydantic import Field

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.openapi import AnswerModel, ObjectBody, answers
from postroom.api.responses import Json


class ImportBody(ObjectBody):
    kind: Literal["tinyagi", "tinyclaw"]
    folder: str | None = Field(default=None, max_length=4000)
    dryRun: bool = True  # noqa: N815


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["import"])

    @api.post("/api/import", responses=answers(AnswerModel, 400, 404, 409))
    async def run_import(caller: Asked, wanted: ImportBody) -> Json:
        """Tell what an installation holds, or with `dryRun: false` take it over; it stays as it is."""
        report = await deps.services.imports.run(caller, wanted.kind, wanted.folder, dry_run=wanted.dryRun)
        return Json(msgspec.to_builtins(report))

    return api
