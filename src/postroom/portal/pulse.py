"""Tells open pages that something happened, at most twice a second, never what: they ask again."""

import asyncio
import contextlib

from fastapi import FastAPI
from fastapi.sse import EventSourceResponse, format_sse_event

from postroom.api.dependencies import Dependencies
from postroom.errors import StoreClosed

GATHER_S = 0.45
KEEP_ALIVE_S = 15.0


def register(app: FastAPI, deps: Dependencies) -> None:
    @app.get("/portal/pulse", include_in_schema=False, response_model=None)
    async def beat(seen: int | None = None) -> EventSourceResponse:
        """`seen` is the last event that the page knows; what happened since it was made is told at once."""

        async def body():
            yield b"retry: 1000\n\n"
            async with deps.room.woken() as woken:
                known = seen
                if known is None:
                    known = (await deps.room.head()).seq
                else:
                    woken.set()
                while not deps.closing.is_set():
                    if not await _rung(woken, deps.closing):
                        yield b": still here\n\n"
                        continue
                    woken.clear()
                    with contextlib.suppress(StoreClosed):
                        head = (await deps.room.head()).seq
                        if head != known:
                            known = head
                            yield format_sse_event(data_str=str(head))
                    await asyncio.sleep(GATHER_S)

        return EventSourceResponse(body(), headers={"cache-control": "no-cache", "x-accel-buffering": "no"})


async def _rung(woken: asyncio.Event, closing: asyncio.Event) -> bool:
    """Whether something happened before the time of a sign of life."""
    waits = [asyncio.create_task(event.wait()) for event in (woken, closing)]
    try:
        await asyncio.wait(waits, timeout=KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    return woken.is_set()
