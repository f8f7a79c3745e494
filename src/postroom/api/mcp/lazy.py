"""The tools, made when they are first asked for, or soon after the start: their library takes as long to load
as all the rest of the server, which need not wait for it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from starlette.types import ASGIApp, Receive, Scope, Send

SOON_S = 2.0

Made = tuple[ASGIApp, contextlib.AbstractAsyncContextManager[None]]


class LazyTools:
    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._wanted = asyncio.Event()
        self._app: asyncio.Future[ASGIApp] | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """They live in one task from their first to their last moment, as their library wants it."""
        self._app = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._keep(self._app))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._app.cancel()

    async def _keep(self, promised: "asyncio.Future[ASGIApp]") -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SOON_S):
                await self._wanted.wait()
        try:
            app, life = await asyncio.to_thread(self._make)
        except Exception as error:
            promised.set_exception(error)
            raise
        async with life:
            promised.set_result(app)
            await asyncio.Event().wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._app is not None, "they are asked only while the server is open"
        self._wanted.set()
        app = await asyncio.shield(self._app)
        await app(scope, receive, send)
