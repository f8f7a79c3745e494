"""For our own command line: any command of the kernel, carried out by the process that owns the store."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from postroom.api.auth.errors import EntryRefused
from postroom.api.claim_wait import taken
from postroom.api.dependencies import Dependencies
from postroom.errors import Invalid, PostroomError
from postroom.kernel import commands as c
from postroom.kernel.transitions.claim import ClaimedBatch
from postroom.runtime import wire

PATH = "/internal/commands"
KIND = "application/msgpack"
WAIT_S = 30.0


def routes(front: Dependencies) -> APIRouter:
    api = APIRouter(include_in_schema=False)

    @api.post(PATH)
    async def carry_out(request: Request, wait: Annotated[float, Query(ge=0, le=WAIT_S)] = 0) -> Response:
        if not request.state.caller.is_owner or request.headers.get("content-type") != KIND:
            raise EntryRefused
        command = wire.decode(await request.body())
        if not isinstance(command, c.Command):
            raise Invalid
        try:
            if wait and isinstance(command, c.Claim):
                done = wire.encode(
                    ClaimedBatch(await taken(front.room, request, command, wait, front.closing))
                )
            else:
                done = wire.encode(await front.room.run(command))
        except PostroomError as error:
            return Response(wire.encode_error(error), status_code=error.http_status, media_type=KIND)
        return Response(done, media_type=KIND)

    return api
