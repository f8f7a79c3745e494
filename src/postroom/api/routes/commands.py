"""For our own command line: any command of the kernel, carried out by the process that owns the store."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from postroom.api.front import Front
from postroom.api.security.refusals import Refused
from postroom.errors import Invalid, PostroomError
from postroom.kernel import commands as c
from postroom.kernel.rows import Stored
from postroom.kernel.verbs.claims import Taken
from postroom.room import Room, wire

PATH = "/internal/commands"
KIND = "application/msgpack"
WAIT_S = 30.0
LOOK_S = 0.5


def routes(front: Front) -> APIRouter:
    api = APIRouter(include_in_schema=False)

    @api.post(PATH)
    async def carry_out(request: Request, wait: Annotated[float, Query(ge=0, le=WAIT_S)] = 0) -> Response:
        if not request.state.caller.is_owner or request.headers.get("content-type") != KIND:
            raise Refused
        command = wire.decode(await request.body())
        if not isinstance(command, c.Command):
            raise Invalid
        try:
            if wait and isinstance(command, c.Claim):
                done = wire.encode(Taken(await _taken(front.room, request, command, wait)))
            else:
                done = wire.encode(await front.room.run(command))
        except PostroomError as error:
            return Response(wire.encode_error(error), status_code=error.http_status, media_type=KIND)
        return Response(done, media_type=KIND)

    return api


async def _taken(room: Room, request: Request, command: c.Claim, wait: float) -> list[Stored]:
    """Whoever asked may go away while waiting; then nothing is claimed for them."""
    taking = asyncio.create_task(room.take(command, wait))
    try:
        while not taking.done():
            await asyncio.wait({taking}, timeout=LOOK_S)
            if not taking.done() and await request.is_disconnected():
                break
    finally:
        if not taking.done():
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)
    return [] if taking.cancelled() else taking.result()
