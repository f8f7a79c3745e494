"""Limits while a request is read hold for everybody, before anybody is known."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from postroom.app import http_protocol
from postroom.app.http_server import listen, serving


class EchoApp:
    """Answers with how much it was sent."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            size, more = size + len(message["body"]), message["more_body"]
        body = str(size).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def end_streams(self) -> None:
        pass


@pytest.fixture
async def port() -> AsyncIterator[int]:
    listener = listen("127.0.0.1", 0)
    try:
        app: Any = EchoApp()
        async with serving(app, listener):
            yield listener.getsockname()[1]
    finally:
        listener.close()


async def say(port: int, *parts: bytes) -> bytes:
    """Send these and read until the server has closed the connection."""
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            with contextlib.suppress(ConnectionError):
                for part in parts:
                    writer.write(part)
                    await writer.drain()
                return await reader.read()
            return b""
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


HEAD = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"


async def test_a_request_within_the_limits_is_answered(port: int) -> None:
    answer = await say(port, HEAD, b"content-length: 5\r\n", b"\r\nhe", b"llo")
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"\r\n5")


async def test_a_head_that_never_ends_is_refused_long_before_memory_does(port: int) -> None:
    answer = await say(port, HEAD, b"x-long: ", *[b"y" * 10_000] * 20)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431")


async def test_who_sends_the_head_slowly_is_cut_off(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_S", 0.0)
    assert (await say(port, HEAD)).startswith(b"HTTP/1.1 408")
    assert (await say(port)).startswith(b"HTTP/1.1 408"), "and who sends nothing at all"


async def test_who_sends_the_body_slowly_is_cut_off(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_S", 0.0)
    monkeypatch.setattr(http_protocol, "BODY_S", 0.0)
    assert await say(port, HEAD + b"content-length: 500\r\n\r\nhel") == b""


async def test_connections_of_one_address_are_counted(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "CONNECTIONS_PER_ADDRESS", 3)
    async with asyncio.timeout(60):
        open_ones = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        try:
            while http_protocol.BoundedHttpProtocol.open_connections["127.0.0.1"] < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert (await say(port)).startswith(b"HTTP/1.1 429")
        finally:
            for _, writer in open_ones:
                writer.close()
                await writer.wait_closed()
        while http_protocol.BoundedHttpProtocol.open_connections["127.0.0.1"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    answer = await say(port, HEAD + b"content-length: 0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200"), "whoever closed is not counted"
