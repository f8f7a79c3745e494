"""Servers on loopback for tests, which leave no connection behind for a later test to hear of."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def serving(
    serve: Conversation, *, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """The port of a server that calls `serve` for each connection, and breaks all of them at the end."""
    transports: list[asyncio.WriteTransport] = []
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        transports.append(writer.transport)
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The client is gone, or the test is over: nobody waits for this task.
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", port, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        # A polite end would wait for the other side, which may be gone or not answer.
        for transport in transports:
            transport.abort()
        ending = list(tasks)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        await server.wait_closed()
