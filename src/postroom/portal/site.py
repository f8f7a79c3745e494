"""All pages and acts of the portal as routes. Errors become pages or sentences here; rules are elsewhere."""

from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from postroom.api.auth.logins import Logins
from postroom.api.dependencies import Dependencies
from postroom.api.responses import Json
from postroom.errors import PostroomError
from postroom.portal import assets, files, login, places, pulse
from postroom.portal.layout import render_error, render_page
from postroom.portal.menu import PARTS
from postroom.portal.visit import CarryOut, PortalVisit, SentForm, ShowPage


def register(app: FastAPI, deps: Dependencies, logins: Logins, failed: Callable[[str], None]) -> None:
    login.register(app, deps, logins, failed)
    assets.register(app)
    pulse.register(app, deps)
    places.register(app, deps)
    files.register(app, deps)
    for part in PARTS:
        for path, show in part.pages.items():
            app.get(path, include_in_schema=False)(_page_route(deps, logins, show))
        for path, act in part.acts.items():
            app.post(path, include_in_schema=False)(_act_route(deps, logins, act))


def _visit(deps: Dependencies, logins: Logins, request: Request) -> PortalVisit:
    return PortalVisit(
        request=request,
        services=deps.services,
        clock=deps.clock,
        settings=deps.control.settings,
        logins=logins,
    )


def _page_route(deps: Dependencies, logins: Logins, show: ShowPage) -> Any:
    async def answer(request: Request) -> Response:
        visit, seen = _visit(deps, logins, request), None
        try:
            # Before anything is read: what happens from now on may be missing on the page.
            seen = (await deps.room.head()).seq
            page = await show(visit)
        except PostroomError as error:
            page = render_error(error)
        if page.file is not None:
            return Response(page.file, media_type="application/json")
        return HTMLResponse(await render_page(visit, page, seen), status_code=page.status)

    return answer


def _act_route(deps: Dependencies, logins: Logins, act: CarryOut) -> Any:
    async def answer(request: Request) -> Response:
        form = SentForm(await request.body())
        try:
            result = await act(_visit(deps, logins, request), form)
        except PostroomError as error:
            if error.http_status >= 500:
                raise
            # An answer like any other to our own script: a browser would call another status a fault.
            return Json({"error": str(error), "code": error.code})
        return Json(msgspec.to_builtins(result))

    return answer
