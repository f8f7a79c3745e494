"""Is it there, and can it work? For supervisors and load balancers; nothing of the office is told."""

from typing import Any

from fastapi import APIRouter

from postroom.api.dependencies import Dependencies
from postroom.api.openapi import Ok
from postroom.api.responses import Json
from postroom.clock import SECOND
from postroom.errors import PostroomError
from postroom.kernel import commands as c

TRIED_AGAIN = 2 * SECOND


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["health"])
    tried: dict[str, Any] = {"at": None, "error": None}

    async def find_problem() -> str | None:
        """Nobody needs a token here, so that whoever asks often is told what was true a moment ago."""
        now = deps.room.clock.now()
        if tried["at"] is None or not 0 <= now - tried["at"] < TRIED_AGAIN:
            tried["at"], tried["error"] = now, None
            try:
                await deps.room.head()
                await deps.room.run(c.Lead(name="readyz", holder=deps.room.actor, seconds=0))
            except PostroomError as error:
                tried["error"] = error.code
        return tried["error"]

    @api.get("/healthz", responses={200: {"model": Ok}})
    async def healthz() -> Json:
        """The process answers."""
        return Json({"ok": True})

    @api.get("/readyz", responses={200: {"model": Ok}, 503: {"model": Ok}})
    async def readyz() -> Json:
        """The store can be read and written."""
        problem = await find_problem()
        if problem is not None:
            return Json({"ok": False, "error": problem}, status_code=503)
        return Json({"ok": True})

    return api
