"""A web server that takes webhooks: it remembers every request and answers with the statuses the test set."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from postroom.testing.platforms.transcript import GIVE_UP_SECONDS


@dataclass(frozen=True)
class ReceivedRequest:
    method: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class WebhookReceiver:
    def __init__(self) -> None:
        self.requests: list[ReceivedRequest] = []
        # Answers to come; after the last of them every request is accepted.
        self.statuses: list[int] = []
        self.answer: web.Response | None = None
        self.url = ""
        self._changed = asyncio.Condition()

    async def wait_for(self, count: int) -> None:
        async with asyncio.timeout(GIVE_UP_SECONDS), self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)

    async def _receive(self, request: web.Request) -> web.Response:
        body = await request.read()
        async with self._changed:
            self.requests.append(ReceivedRequest(request.method, dict(request.query), request.headers, body))
            self._changed.notify_all()
        status = self.statuses.pop(0) if self.statuses else 200
        return self.answer or web.Response(status=status)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/hook", self._receive)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/hook"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()
