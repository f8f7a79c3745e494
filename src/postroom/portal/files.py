"""Files of a chat: taken up while a message is written, and given out to be kept, never to be run."""

from typing import Annotated
from urllib.parse import quote

from fastapi import FastAPI, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from postroom.api.auth.auth_middleware import UPLOADS
from postroom.api.dependencies import Dependencies
from postroom.api.responses import Json, failure
from postroom.errors import PostroomError


def file_url(path: str) -> str:
    return f"{UPLOADS}?path={quote(path, safe='')}"


def register(app: FastAPI, deps: Dependencies) -> None:
    @app.put(UPLOADS, include_in_schema=False)
    async def take(request: Request, name: Annotated[str, Query(min_length=1, max_length=255)]) -> Response:
        try:
            path = await deps.services.files.save(request.state.caller, name, request.stream())
        except PostroomError as error:
            return failure(UPLOADS, error)
        return Json({"path": path})

    @app.get(UPLOADS, include_in_schema=False)
    async def give(request: Request, path: Annotated[str, Query(min_length=1, max_length=4000)]) -> Response:
        try:
            opened = await deps.services.files.open(request.state.caller, path)
        except PostroomError as error:
            return failure(UPLOADS, error)
        headers = {
            "content-disposition": f"attachment; filename*=UTF-8''{quote(opened.found.name)}",
            "content-length": str(opened.found.size),
            "cache-control": "private, no-cache",
        }
        return StreamingResponse(opened.pieces(), media_type="application/octet-stream", headers=headers)
