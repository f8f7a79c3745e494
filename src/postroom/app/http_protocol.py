"""HTTP/1.1 with limits while a request is read: of the size of its head, of time, of connections per address.

Nobody is authenticated before a request was read, so all of this holds for everybody. Nothing here costs a
timer for each request: the server looks at all connections once a second.
"""

import asyncio
from collections import Counter
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from postroom.api.auth.auth_middleware import MOST_HEADER_BYTES
from postroom.api.auth.errors import HeadersTooLarge, RequestTooSlow, TooManyConnections
from postroom.api.responses import failure
from postroom.errors import PostroomError

HEAD_S = 20.0
# A body has this time, and more for what has come: whoever sends less than that in a second is cut off.
BODY_S = 30.0
BODY_BYTES_PER_S = 4 * 1024
CONNECTIONS_PER_ADDRESS = 1000


class BoundedHttpProtocol(HttpToolsProtocol):
    open_connections: ClassVar[Counter[str]] = Counter()

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._head_bytes = 0
        self._body_bytes = 0
        self._is_reading_head = True
        self._since: float | None = self.loop.time()
        self._is_refused = False
        self._address = self.client[0] if self.client else ""
        self.open_connections[self._address] += 1
        if self.open_connections[self._address] > CONNECTIONS_PER_ADDRESS:
            self._refuse(TooManyConnections(limit=CONNECTIONS_PER_ADDRESS))

    def connection_lost(self, exc: Exception | None) -> None:
        self.open_connections[self._address] -= 1
        if self.open_connections[self._address] <= 0:
            del self.open_connections[self._address]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        if self._is_reading_head:
            self._head_bytes += len(data)
        else:
            self._body_bytes += len(data)
        super().data_received(data)
        if self._is_reading_head and self._head_bytes > MOST_HEADER_BYTES:
            self._refuse(HeadersTooLarge(limit=MOST_HEADER_BYTES))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_reading_head, self._head_bytes = True, 0
        if self._since is None:
            self._since = self.loop.time()

    def on_headers_complete(self) -> None:
        self._is_reading_head, self._body_bytes = False, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._since = None
        # What comes now is the next request.
        self._is_reading_head, self._head_bytes = True, 0
        super().on_message_complete()

    def check_pace(self, now: float) -> None:
        """Called once a second: a request that is not read in time ends, whatever is still to come of it."""
        if self._since is None or self._is_refused or self.flow.read_paused:
            return
        allowed = HEAD_S
        if not self._is_reading_head:
            allowed = HEAD_S + BODY_S + self._body_bytes / BODY_BYTES_PER_S
        if now - self._since <= allowed:
            return
        if self.cycle is not None and not self.cycle.response_complete:
            # Whoever works on it sees that the caller is gone.
            self._is_refused = True
            self.transport.abort()
        else:
            self._refuse(RequestTooSlow())

    def _refuse(self, error: PostroomError) -> None:
        self._is_refused = True
        answer = failure("/", error)
        head: list[Any] = [f"HTTP/1.1 {answer.status_code} Refused\r\nconnection: close\r\n".encode()]
        head += [name + b": " + value + b"\r\n" for name, value in answer.raw_headers]
        self.transport.write(b"".join([*head, b"\r\n", bytes(answer.body)]))
        self.transport.close()
