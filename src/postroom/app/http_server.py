"""The HTTP server within our own event loop: we bind, we decide when it ends."""

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator
from typing import Any

import uvicorn

from postroom.api.app import OfficeApi
from postroom.api.auth.hosts import is_loopback
from postroom.app.http_protocol import BoundedHttpProtocol
from postroom.errors import PostroomError
from postroom.settings.sections import ApiSettings

BACKLOG = 1024
KEEP_ALIVE_S = 30
TICK_S = 1.0


class AddressTaken(PostroomError):
    """{host} port {port} is in use by another program. Stop it, or choose another port: POSTROOM_API_PORT"""

    code = "ADDRESS_IN_USE"
    exit_code = 6


class AddressUnusable(PostroomError):
    """It is not possible to listen on {host} port {port}: {reason}. Check POSTROOM_HOST and api.host."""

    code = "ADDRESS_UNUSABLE"
    exit_code = 6


class TooOpen(PostroomError):
    """{host} can be reached from other machines. {fix}"""

    code = "TOO_OPEN"
    exit_code = 2


def check_address(api: ApiSettings) -> None:
    """Only this machine, unless somebody wants it otherwise in so many words, and with a token."""
    if is_loopback(api.host):
        return
    if not api.remote:
        fix = "If that is what you want, say so: postroom settings set api.remote true"
        raise TooOpen(host=api.host, fix=fix)
    if api.auth != "token":
        raise TooOpen(host=api.host, fix="Then a token is needed: postroom settings set api.auth token")


def listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # Named as TCP, or asyncio would let small answers wait for one another.
        listener = socket.socket(family, kind, socket.IPPROTO_TCP)
    except OSError as error:
        raise AddressUnusable(host=host, port=port, reason=error.strerror or str(error)) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressTaken(host=host, port=port) from None
        raise AddressUnusable(host=host, port=port, reason=error.strerror or str(error)) from None
    return listener


def url_of(host: str, listener: socket.socket) -> str:
    port = listener.getsockname()[1]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    def end(self) -> None:
        self.should_exit = True
        self._ending.set()

    def hang_up(self) -> None:
        """Who connected while it ended, and asked for nothing, is still there."""
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()

    async def main_loop(self) -> None:
        """Wakes once a second, for the date in answers and for who is too slow; an end is seen at once."""
        while not await self.on_tick(0):
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, BoundedHttpProtocol):
                    connection.check_pace(now)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._ending.wait()

    def capture_signals(self) -> Any:
        """The process has handlers of its own."""
        return contextlib.nullcontext()


@contextlib.asynccontextmanager
async def serving(app: OfficeApi, listener: socket.socket, *, grace_s: int = 5) -> AsyncIterator[None]:
    config = uvicorn.Config(
        app,
        http=BoundedHttpProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=grace_s,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not task.done():  # noqa: ASYNC110 - it has no event to wait for
        await asyncio.sleep(0.005)
    if task.done():
        task.result()
        raise AddressUnusable(host="", port=0, reason="the server ended at once")
    try:
        yield
    finally:
        await app.end_streams()
        server.end()
        await task
        server.hang_up()
