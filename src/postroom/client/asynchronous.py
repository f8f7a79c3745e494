"""The asynchronous client."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, TypeVar

import httpx2

from postroom.client.access_verbs import AccessVerbs
from postroom.client.calls import Call
from postroom.client.connection import options
from postroom.client.errors import ServiceError, refused
from postroom.client.message_verbs import MessageVerbs, stream_path
from postroom.client.model import StreamEvent, read_event
from postroom.client.place_verbs import PlaceVerbs
from postroom.client.retry import pause_after

T = TypeVar("T")


class AsyncClient(MessageVerbs, PlaceVerbs, AccessVerbs):
    """`key` is an API key or the owner's token. Too many requests are waited for up to `patience_s`."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        tenant: str | None = None,
        patience_s: float = 60.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._patience_s = patience_s
        self._http = httpx2.AsyncClient(transport=transport, **options(url, key, tenant))

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        tried = 0
        while True:
            try:
                answer = await self._http.request(
                    call.method, call.path, json=call.body, params=call.query or None
                )
                return call.read(answer.status_code, answer.content)
            except (ServiceError, httpx2.TransportError) as error:
                pause = pause_after(error, call, tried, self._patience_s)
                if pause is None:
                    raise
            tried += 1
            await asyncio.sleep(pause)

    async def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Any route of the service, `path` beginning after /v1; the whole answer as it came."""
        return await self.send(Call(method, path, body=body, query=query))

    async def follow_stream(
        self, scope: str, stream_id: str, *, after: int = -1
    ) -> AsyncIterator[StreamEvent]:
        """Every part of a stream as it comes, and at last how it ended."""
        path, query = stream_path(scope, stream_id, "follow"), {"after": after}
        async with self._http.stream("GET", path, params=query, timeout=None) as answer:
            if answer.is_error:
                await answer.aread()
                raise refused(answer.status_code, answer.json())
            async for event in httpx2.EventSource(answer):
                yield read_event(event.event, event.data)
