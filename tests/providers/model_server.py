"""A model server on loopback that speaks the Anthropic and OpenAI streaming protocols, and fails on demand.

The scenario is the first part of the path, so one server plays every failure: `http://127.0.0.1:PORT/s/e529`.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.loopback import serving
from tests.providers import model_wire as wire

FAILURES = {
    "e400": (400, "bad request body", {}),
    "e401": (401, "invalid x-api-key sk-fake-abcdefghij", {}),
    "e403": (403, "forbidden for this key", {}),
    "e404": (404, "model: no-such-model", {}),
    "e429": (429, "slow down", {"retry-after": "7"}),
    "e429one": (429, "slow down", {"retry-after": "1"}),
    "e429ms": (429, "slow down", {"retry-after-ms": "1500"}),
    "e429date": (429, "slow down", {"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}),
    "quota": (429, "You exceeded your current quota, please check your plan and billing details.", {}),
    "credit": (400, "Your credit balance is too low to access the API.", {}),
    "e500": (500, "internal error", {}),
    "e503": (503, "unavailable", {}),
    "e529": (529, "Overloaded", {"retry-after": "3"}),
    "context": (400, "prompt is too long: 250000 tokens > 200000 maximum", {}),
    "e413": (413, "request exceeds the maximum size", {}),
}


@dataclass
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class ModelServer:
    url: str = ""
    received: list[Received] = field(default_factory=list)
    dropped: asyncio.Event = field(default_factory=asyncio.Event)

    def scenario(self, name: str, suffix: str = "") -> str:
        return f"{self.url}/s/{name}{suffix}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await _read_request(reader):
                self.received.append(request)
                if not await self._answer(request, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            self.dropped.set()

    async def _answer(
        self, request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        scenario = request.path.split("/")[2] if request.path.startswith("/s/") else "ok"
        flavour = wire.flavour_of(request.path)
        if request.method != "POST" or flavour is None:
            _head(writer, 404 if request.method == "POST" else 200, "application/json")
            _chunk(writer, b"{}")
            _chunk(writer, b"")
            await writer.drain()
            return True
        if scenario in FAILURES:
            status, message, headers = FAILURES[scenario]
            _head(writer, status, "application/json", headers)
            _chunk(writer, json.dumps(flavour.error(status, message, scenario)).encode())
            _chunk(writer, b"")
            await writer.drain()
            return True
        if scenario == "silent":
            await self._wait_for_client(reader)
            return False
        return await self._stream(scenario, flavour, request, reader, writer)

    async def _stream(
        self,
        scenario: str,
        flavour: type[wire.Flavour],
        request: Received,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        _head(writer, 200, "text/event-stream")
        parts = wire.parts_of(scenario, request.body)
        model = request.body.get("model", "?")
        events = flavour.events(model, parts, scenario)
        if scenario == "shell" and (command := wire.command_of(request.body)) is not None:
            results = flavour.tool_results(request.body)
            events = (
                flavour.events(model, ["it said: ", *results], scenario)
                if results
                else flavour.calls_shell(model, command, request.body)
            )
        for position, event in enumerate(events):
            if position == 4 and scenario == "stall":
                await writer.drain()
                await self._wait_for_client(reader)
                return False
            if position == 4 and scenario == "cut":
                await writer.drain()
                return False
            _chunk(writer, event)
            await writer.drain()
            if scenario == "drip":
                await asyncio.sleep(0.05)
        _chunk(writer, b"")
        await writer.drain()
        return True

    async def _wait_for_client(self, reader: asyncio.StreamReader) -> None:
        await reader.read()
        self.dropped.set()


async def _read_request(reader: asyncio.StreamReader) -> Received | None:
    start = await reader.readline()
    if not start.strip():
        return None
    method, path, _ = start.decode().split(" ", 2)
    headers: dict[str, str] = {}
    while line := (await reader.readline()).decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, json.loads(body) if body.startswith(b"{") else {})


def _head(
    writer: asyncio.StreamWriter, status: int, content_type: str, headers: dict[str, str] | None = None
) -> None:
    lines = [
        f"HTTP/1.1 {status} X",
        f"content-type: {content_type}",
        "transfer-encoding: chunked",
        "request-id: req_test",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    ]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


@asynccontextmanager
async def model_server(port: int = 0) -> AsyncIterator[ModelServer]:
    served = ModelServer()
    async with serving(served.serve, port=port) as found:
        served.url = f"http://127.0.0.1:{found}"
        yield served
