"""Taking over an office that another program kept on this machine. For the owner only."""

import asyncio
import contextlib
from typing import Literal

import msgspec
from fastapi import APIRouter
from pydantic import Field

from postroom.api.dependencies import Dependencies
from postroom.api.openapi import AnswerModel, ObjectBody, answers
from postroom.api.responses import Json
from postroom.office.imports import Importer, open_source


class ImportBody(ObjectBody):
    kind: Literal["tinyagi", "tinyclaw"]
    folder: str | None = Field(default=None, max_length=4000)
    dryRun: bool = True  # noqa: N815


def routes(front: Dependencies) -> APIRouter:
    api = APIRouter(tags=["import"])
    one_at_a_time = asyncio.Lock()

    @api.post("/api/import", responses=answers(AnswerModel, 400, 404, 409))
    async def move_in(wanted: ImportBody) -> Json:
        """Tell what an installation holds, or with `dryRun: false` take it over; it stays as it is."""
        async with one_at_a_time, contextlib.AsyncExitStack() as stack:
            opening = open_source(wanted.kind, wanted.folder)
            source = await asyncio.to_thread(opening.__enter__)
            stack.push_async_callback(asyncio.to_thread, opening.__exit__, None, None, None)
            mover = Importer(
                front.room,
                front.settings,
                front.home,
                front.clock,
                lambda: front.staff.office.directory,
                lambda: front.staff.office.schedules,
                front.staff.apply,
            )
            return Json(msgspec.to_builtins(await mover.move(source, dry_run=wanted.dryRun)))

    return api
