"""Somebody who receives webhooks, on a real socket."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Sequence
from typing import Any

from postroom.webhooks.addresses import Network, networks
from tests.loopback import serving

EVERYWHERE = networks(["0.0.0.0/0", "::/0"])


def everywhere() -> Sequence[Network]:
    """Where webhooks may lead in tests: to ourselves too."""
    return EVERYWHERE


class Receiver:
    def __init__(self, fail_first: int) -> None:
        self._fail = fail_first
        self._taken: list[Any] = []
        self._changed = asyncio.Condition()
        self.tries = 0
        self.last: tuple[bytes, dict[str, str]] = (b"", {})
        self.url = ""

    async def events(self, count: int) -> list[Any]:
        """The first so many that were taken."""
        async with asyncio.timeout(120), self._changed:
            await self._changed.wait_for(lambda: len(self._taken) >= count)
            return self._taken[:count]

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode().split("\r\n")[1:]
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.tries += 1
            if self._fail > 0:
                self._fail -= 1
                writer.write(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n")
            else:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                async with self._changed:
                    self.last = (body, headers)
                    self._taken.append(json.loads(body))
                    self._changed.notify_all()
            await writer.drain()


@contextlib.asynccontextmanager
async def receiving(fail_first: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver(fail_first)
    async with serving(receiver.handle, tls=tls) as port:
        receiver.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/hook"
        yield receiver
