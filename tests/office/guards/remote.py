"""A room for several processes: one owns it, the others ask it over a socket, call by call."""

import asyncio
import contextlib
import pickle
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from postroom import Room
from postroom.clock import SystemClock
from postroom.kernel import commands as c
from postroom.runtime.leader import LEASE_S, Leader

SIZE = 8


async def _send(writer: asyncio.StreamWriter, value: Any) -> None:
    data = pickle.dumps(value)
    writer.write(len(data).to_bytes(SIZE, "big") + data)
    await writer.drain()


async def _receive(reader: asyncio.StreamReader) -> Any:
    size = int.from_bytes(await reader.readexactly(SIZE), "big")
    return pickle.loads(await reader.readexactly(size))


@asynccontextmanager
async def served(room: Room, path: Path) -> AsyncIterator[None]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                name, args, options = await _receive(reader)
                try:
                    answer = await getattr(room, name)(*args, **options)
                except Exception as error:
                    answer = error
                await _send(writer, answer)
        writer.close()

    server = await asyncio.start_unix_server(serve, path)
    try:
        yield
    finally:
        server.close()


class RemoteRoom:
    """Everything the office asks of a room; each call has a connection of its own."""

    def __init__(self, path: Path, actor: str) -> None:
        self._path = path
        self.actor = actor

    def run(self, command: c.Command) -> Coroutine[Any, Any, Any]:
        return self._call("run", command)

    def leader(self, name: str, *, lease_s: float = LEASE_S) -> Leader:
        return Leader(self, name, SystemClock(), lease_s=lease_s)

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **options: self._call(name, *args, **options)

    async def _call(self, name: str, *args: Any, **options: Any) -> Any:
        reader, writer = await asyncio.open_unix_connection(self._path)
        try:
            await _send(writer, (name, args, options))
            answer = await _receive(reader)
        finally:
            writer.close()
        if isinstance(answer, Exception):
            raise answer
        return answer
