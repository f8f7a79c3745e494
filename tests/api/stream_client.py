"""A listener of the event stream, as a client would write it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2


class Listener:
    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._events = httpx2.EventSource(response).__aiter__()
        self.last_id = ""

    async def next(self, within: float = 60.0) -> tuple[str, dict[str, Any]]:
        async with asyncio.timeout(within):
            event = await anext(self._events)
        self.last_id = event.id
        return event.event, json.loads(event.data)

    async def take(self, count: int, within: float = 60.0) -> list[tuple[str, dict[str, Any]]]:
        async with asyncio.timeout(within):
            return [await self.next(within) for _ in range(count)]


@asynccontextmanager
async def listening(http: httpx2.AsyncClient, **options: Any) -> AsyncIterator[Listener]:
    async with http.stream("GET", "/api/events/stream", **options) as response:
        assert response.status_code == 200, await response.aread()
        listener = Listener(response)
        name, data = await listener.next()
        assert name == "connected"
        assert isinstance(data["timestamp"], int)
        yield listener
