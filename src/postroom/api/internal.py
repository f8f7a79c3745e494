"""For our own command line: any method of a service, carried out by the process that owns the store."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from postroom.api.auth.errors import EntryRefused
from postroom.api.dependencies import Dependencies
from postroom.errors import Invalid, PostroomError
from postroom.runtime import wire
from postroom.services.container import ServiceRequest

PATH = "/internal/call"
KIND = "application/msgpack"
LOOK_S = 0.5


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(include_in_schema=False)

    @api.post(PATH)
    async def call_service(request: Request) -> Response:
        if not request.state.caller.is_owner or request.headers.get("content-type") != KIND:
            raise EntryRefused
        wanted = wire.decode(await request.body())
        if not isinstance(wanted, ServiceRequest):
            raise Invalid
        try:
            method = deps.services.find_method(wanted)
            done = wire.encode(await _while_connected(request, method(*wanted.args, **wanted.options)))
        except PostroomError as error:
            return Response(wire.encode_error(error), status_code=error.http_status, media_type=KIND)
        return Response(done, media_type=KIND)

    return api


async def _while_connected(request: Request, work: Any) -> Any:
    """Whoever has hung up waits for nothing any more."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait((task,), timeout=LOOK_S)
            if not task.done() and await request.is_disconnected():
                break
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    return await task
