"""A server for protocols of lines over TCP, whose connections can be broken at once."""

import asyncio
from collections.abc import Awaitable, Callable

from postroom.testing.platforms.base import LOOPBACK

LINE_LIMIT = 64 * 1024 * 1024

Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class LineServer:
    """`serve` holds the conversation with one client; what it raises goes to `report`."""

    def __init__(self, serve: Conversation, report: Callable[[Exception], None]) -> None:
        self._serve = serve
        self._report = report
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def open(self, port: int) -> int:
        self._server = await asyncio.start_server(self._accept, LOOPBACK, port, limit=LINE_LIMIT)
        return self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        self.drop_connections()
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()

    def drop_connections(self) -> None:
        for writer in self._connections.values():
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The client is gone, or the test broke the connection: nobody else waits for this task.
            pass
        except Exception as error:
            self._report(error)
        finally:
            del self._connections[task]
            writer.close()
