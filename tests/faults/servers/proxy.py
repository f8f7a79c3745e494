"""A proxy before a server's socket: it can be slow, cut every connection, or let nobody through."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

CHUNK = 65536


class SocketProxy:
    """Runs in a thread of its own; everything about it is done there."""

    def __init__(self, at: Path, server: Path) -> None:
        self._at = at
        self._server = server
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._listening = threading.Event()
        self.delay_s = 0.0
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))

    def start(self) -> None:
        self._thread.start()
        assert self._listening.wait(60)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Every connection, in the middle of whatever it says."""
        self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _run(self) -> None:
        listening = await asyncio.start_unix_server(self._pass_on, self._at)
        self._at.chmod(0o777)
        self._listening.set()
        await self._ended.wait()
        listening.close()
        self._cut()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with contextlib.suppress(OSError):
                from_server, to_server = await asyncio.open_unix_connection(self._server)
                self._writers.add(to_server)
                try:
                    await asyncio.gather(self._copy(reader, to_server), self._copy(from_server, writer))
                finally:
                    self._writers.discard(to_server)
                    to_server.transport.abort()
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(CHUNK):
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            target.write(data)
            await target.drain()
        raise ConnectionResetError  # the other way ends too


@contextlib.contextmanager
def proxy(at: Path, server: Path) -> Iterator[SocketProxy]:
    made = SocketProxy(at, server)
    made.start()
    try:
        yield made
    finally:
        made.stop()
