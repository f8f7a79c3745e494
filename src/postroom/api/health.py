"""Is it there, and can it work? For supervisors and load balancers; nothing of the office is told."""

from fastapi import APIRouter

from postroom.api.dependencies import Dependencies
from postroom.api.openapi import Ok
from postroom.api.responses import Json
from postroom.errors import PostroomError


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["health"])

    @api.get("/healthz", responses={200: {"model": Ok}})
    async def healthz() -> Json:
        """The process answers."""
        return Json({"ok": True})

    @api.get("/readyz", responses={200: {"model": Ok}, 503: {"model": Ok}})
    async def readyz() -> Json:
        """The store can be read."""
        try:
            await deps.room.head()
        except PostroomError as error:
            return Json({"ok": False, "error": error.code}, status_code=503)
        return Json({"ok": True})

    return api
