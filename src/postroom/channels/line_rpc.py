"""JSON-RPC in lines, over any pair of streams: with programs that stand between us and a platform.

A call whose answer never came may have been done; one that could not be written was not.
"""

import asyncio
import contextlib
import itertools
import json
from collections.abc import Awaitable, Callable
from typing import Any

CONNECT_S = 10.0
MOST_LINE_BYTES = 100 * 1024 * 1024

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class RpcUnreachable(Exception):
    """There is no connection, and nothing was asked."""


class RpcLost(Exception):
    """The connection broke before the answer came."""


class RpcRefusal(Exception):
    def __init__(self, code: int, message: str, data: Any) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def connect_to(host: str, port: int) -> Callable[[], Awaitable[Streams]]:
    async def connect() -> Streams:
        return await asyncio.open_connection(host, port, limit=MOST_LINE_BYTES)

    return connect


class LineRpc:
    def __init__(self, connect: Callable[[], Awaitable[Streams]]) -> None:
        self._open_streams = connect
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()

    async def call(self, method: str, **params: Any) -> Any:
        writer = await self._connect()
        number = next(self._numbers)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": number}
        try:
            writer.write(json.dumps(request).encode() + b"\n")
            await writer.drain()
            return await answer
        except OSError as error:
            raise RpcLost(str(error)) from error
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        reading, self._reading = self._reading, None
        writer, self._writer = self._writer, None
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _connect(self) -> asyncio.StreamWriter:
        async with self._connecting:
            if self._writer is not None and self._reading is not None and not self._reading.done():
                return self._writer
            await self.close()
            try:
                async with asyncio.timeout(CONNECT_S):
                    reader, self._writer = await self._open_streams()
            except (OSError, TimeoutError) as error:
                raise RpcUnreachable(str(error) or "no answer") from error
            self._reading = asyncio.create_task(self._read(reader))
            return self._writer

    async def _read(self, reader: asyncio.StreamReader) -> None:
        reason = "the other side closed the connection"
        try:
            while line := await reader.readline():
                self._take(json.loads(line))
        except (OSError, ValueError) as error:
            reason = str(error)
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(RpcLost(reason))

    def _take(self, told: dict[str, Any]) -> None:
        answer = self._waiting.get(told.get("id") or 0)
        if answer is None or answer.done():
            return
        if error := told.get("error"):
            refusal = RpcRefusal(error.get("code", 0), str(error.get("message")), error.get("data"))
            answer.set_exception(refusal)
        else:
            answer.set_result(told.get("result"))
