"""Where platforms push messages. Nobody needs a token here: the channel itself checks who signed.

It speaks as each platform wants it, so it is no part of the described API; see docs/how-to/channels.md.
"""

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse

from postroom.api.dependencies import Dependencies
from postroom.api.openapi import Id


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["hooks"])

    async def accept(request: Request, channel: str) -> PlainTextResponse:
        status, text = await deps.services.channels.accept_webhook(
            channel, request.method, dict(request.headers), dict(request.query_params), await request.body()
        )
        return PlainTextResponse(text, status_code=status)

    @api.post("/hooks/{channel}", include_in_schema=False)
    async def push(request: Request, channel: Id) -> PlainTextResponse:
        """A platform pushes messages to a channel, signed in its own way."""
        return await accept(request, channel)

    @api.get("/hooks/{channel}", include_in_schema=False)
    async def verify(request: Request, channel: Id) -> PlainTextResponse:
        """A platform asks whether this address takes messages for a channel."""
        return await accept(request, channel)

    return api
