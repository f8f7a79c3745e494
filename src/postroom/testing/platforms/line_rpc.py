"""A fake platform behind JSON-RPC in lines over TCP: faults in the middle of calls, and loud refusals."""

import asyncio
import json
from abc import abstractmethod
from typing import Any

from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.base import FakePlatform
from postroom.testing.platforms.faults import CallHeld, ConnectionDropped, RateLimited, ServerFailed
from postroom.testing.platforms.http import CallParameters, NotImplementedByFake, Refusal
from postroom.testing.platforms.line_server import LineServer

INVALID_REQUEST, METHOD_NOT_FOUND = -32600, -32601

# Code, message and data of an error.
RpcError = tuple[int, str, Any]


class LineRpcPlatform(FakePlatform):
    """Calls are named by their method. Those of one connection are answered one after the other, or side by
    side where the real one does so."""

    side_by_side = False

    def __init__(self, *, clock: HeldClock | None = None) -> None:
        super().__init__(clock=clock)
        self._server = LineServer(self._serve, lambda error: self.record_failure(f"failed: {error!r}"))

    async def _open(self, port: int) -> int:
        return await self._server.open(port)

    async def _close(self) -> None:
        await self._server.close()

    @abstractmethod
    async def _execute(self, client: "LineClient", method: str, parameters: CallParameters) -> Any:
        """The result, or raises a `Refusal` or that it is not implemented."""

    @abstractmethod
    def _describe_rate_limit(self, fault: RateLimited) -> RpcError: ...

    @abstractmethod
    def _describe_failure(self) -> RpcError: ...

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = LineClient(writer)
        answering: set[asyncio.Task[None]] = set()
        await self._welcome(client)
        try:
            while line := await reader.readline():
                if not self.side_by_side:
                    await self._answer(client, line)
                    continue
                task = asyncio.create_task(self._answer(client, line))
                answering.add(task)
                task.add_done_callback(answering.discard)
        finally:
            for task in answering:
                task.cancel()
            await asyncio.gather(*answering, return_exceptions=True)
            await self._dismiss(client)

    async def _welcome(self, client: "LineClient") -> None:
        """What a platform does when somebody connects."""

    async def _dismiss(self, client: "LineClient") -> None:
        """And when they are gone."""

    async def _follow_up(self, client: "LineClient", method: str) -> None:
        """What follows the answer to a call."""

    async def _answer(self, client: "LineClient", line: bytes) -> None:
        request = json.loads(line)
        method, number = request.get("method"), request.get("id")
        if not method:
            await client.respond(number, error=(INVALID_REQUEST, "method field must be set", None))
            return
        fault = self.faults.take(method, RateLimited, ServerFailed, ConnectionDropped, CallHeld)
        match fault:
            case RateLimited():
                await client.respond(number, error=self._describe_rate_limit(fault))
                return
            case ServerFailed():
                await client.respond(number, error=self._describe_failure())
                return
            case ConnectionDropped(when="before"):
                client.abort()
                return
            case CallHeld(when="before"):
                await fault.stop_here()
        try:
            result = await self._execute(client, method, CallParameters(request.get("params", {})))
        except Refusal as refusal:
            details = refusal.details.get("data")
            await client.respond(number, error=(refusal.status, refusal.message, details))
            return
        except NotImplementedByFake as missing:
            self.record_failure(f"does not implement {missing}")
            await client.respond(number, error=(METHOD_NOT_FOUND, f"the fake lacks {missing}", None))
            return
        if isinstance(fault, ConnectionDropped):
            client.abort()
            return
        if isinstance(fault, CallHeld):
            await fault.stop_here()
        await client.respond(number, result=result)
        await self._follow_up(client, method)


class LineClient:
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def abort(self) -> None:
        self._writer.transport.abort()

    async def notify(self, message: dict[str, Any]) -> None:
        params = {"subscription": 0, "result": message}
        await self._write({"jsonrpc": "2.0", "method": "receive", "params": params})

    async def respond(self, number: Any, *, result: Any = None, error: RpcError | None = None) -> None:
        if error is None:
            await self._write({"jsonrpc": "2.0", "result": result, "id": number})
        else:
            code, message, data = error
            described = {"code": code, "message": message, "data": data}
            await self._write({"jsonrpc": "2.0", "error": described, "id": number})

    async def _write(self, message: dict[str, Any]) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")
        await self._writer.drain()
