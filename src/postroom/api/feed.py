"""For executors of the pipeline on other machines: ranges of the store as Arrow. For the owner only."""

import asyncio
from itertools import chain
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import StreamingResponse

from postroom.api.auth.errors import EntryRefused
from postroom.errors import InvalidField
from postroom.pipeline.errors import PartMissing, SourceUnknown

if TYPE_CHECKING:
    from postroom.pipeline.sources.sqlite import SqliteSource

Number = Annotated[int, Query(ge=0)]


def routes(store: str | None) -> APIRouter:
    """`store` is the URL of the store."""
    api = APIRouter(include_in_schema=False)

    @api.get("/internal/feed/hash")
    async def hash_of(request: Request, seq: Number) -> dict[str, str | None]:
        source = _open(request, store)
        found = await asyncio.to_thread(source.hash_of, seq)
        return {"hash": found.hex() if found else None}

    @api.get("/internal/feed/{kind}")
    async def read_range(request: Request, kind: str, after: Number, up_to: Number) -> StreamingResponse:
        source = _open(request, store)
        from postroom.pipeline.sources.feed import KINDS, MEDIA_TYPE, encode_range

        if kind not in KINDS:
            raise InvalidField("kind", f"is {kind!r}, must be one of {', '.join(KINDS)}")
        pieces = encode_range(source, kind, after, up_to)
        # A store that cannot be read is told by the status, which goes out with the first piece.
        first = await asyncio.to_thread(next, pieces, b"")
        return StreamingResponse(chain((first,), pieces), media_type=MEDIA_TYPE)

    return api


def _open(request: Request, store: str | None) -> "SqliteSource":
    if not request.state.caller.is_owner:
        raise EntryRefused
    try:
        from postroom.pipeline.sources.sqlite import open_source
    except ImportError as error:
        raise PartMissing(package=error.name or "adbc_driver_sqlite") from error
    if store is None:
        raise SourceUnknown(url="")
    return open_source(store)
