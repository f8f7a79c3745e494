"""Taking over an office that another program kept on this machine. For the owner only."""

import asyncio
import contextlib
from typing import Literal

import msgspec
from fastapi import APIRouter
from pydantic import Field

from postroom.api.answers import Json
from postroom.api.front import Front
from postroom.api.schema import Answer, Body, answers
from postroom.office.imports import Mover, open_source


class Wanted(Body):
    kind: Literal["tinyagi", "tinyclaw"]
    folder: str | None = Field(default=None, max_length=4000)
    dryRun: bool = True  # noqa: N815


def routes(front: Front) -> APIRouter:
    api = APIRouter(tags=["import"])
    one_at_a_time = asyncio.Lock()

    @api.post("/api/import", responses=answers(Answer, 400, 404, 409))
    async def move_in(wanted: Wanted) -> Json:
        """Tell what an installation holds, or with `dryRun: false` take it over; it stays as it is."""
        async with one_at_a_time, contextlib.AsyncExitStack() as stack:
            opening = open_source(wanted.kind, wanted.folder)
            source = await asyncio.to_thread(opening.__enter__)
            stack.push_async_callback(asyncio.to_thread, opening.__exit__, None, None, None)
            mover = Mover(
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
