"""Connections that send one request after another and note how long each took.

The load comes from one thread that waits for all its sockets at once: the server shares the machine with it,
and a client that costs as much as the server would be measured too.
"""

import json
import math
import re
import selectors
import socket
import time
from collections.abc import Callable

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


def request(path: str, token: str, body: dict[str, object]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


class _Connection:
    """One request at a time; `began` is when it should have gone out."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.began = 0.0
        self._data = b""

    def send(self, data: bytes, began: float) -> None:
        self.began, self._data = began, b""
        sent = self.socket.send(data)
        assert sent == len(data), "a request fits into the buffer of a socket that has nothing else to send"

    def answered(self) -> bool:
        """Whether the answer is whole now."""
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("the server hung up")
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        match = _LENGTH.search(self._data) if end >= 0 else None
        if match is None or len(self._data) < end + 4 + int(match[1]):
            return False
        if self._data[9:12] not in (b"200", b"201"):
            raise RuntimeError(self._data.decode("utf-8", "replace"))
        return True


def load(
    port: int,
    make: Callable[[int], bytes],
    *,
    connections: int,
    seconds: float,
    rate: float | None = None,
    most: float = math.inf,
) -> list[float]:
    """The time each request took, over all connections. With `rate` they go out at fixed moments, so many a
    second, and one that has to wait for a connection has begun all the same. After `most` requests it is
    over."""
    took: list[float] = []
    with selectors.DefaultSelector() as selector:
        idle = [_Connection(port) for _ in range(connections)]
        for each in idle:
            selector.register(each.socket, selectors.EVENT_READ, each)
        start = now = time.perf_counter()
        end, number, busy = start + seconds, 0, 0
        while (now < end and number < most) or busy:
            while idle and now < end and number < most:
                began = now if rate is None else start + number / rate
                if began > now:
                    break
                idle.pop().send(make(number), began)
                number, busy = number + 1, busy + 1
            wait = None if rate is None else max(0.0, start + number / rate - now)
            for key, _ in selector.select(wait if idle and now < end and number < most else None):
                if key.data.answered():
                    took.append(time.perf_counter() - key.data.began)
                    idle.append(key.data)
                    busy -= 1
            now = time.perf_counter()
        for each in idle:
            each.socket.close()
    return took
