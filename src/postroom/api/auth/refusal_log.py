"""Refusals are kept in the ledger, without the secrets that were tried, and never so many that they harm."""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from postroom.clock import SECOND, Clock
from postroom.errors import PostroomError
from postroom.kernel import commands as c
from postroom.office.ports import RoomPort

log = logging.getLogger("postroom.security")

PER_MINUTE = 20
KIND = "audit"


class RefusalLog:
    """At most so many records a minute; the next one tells how many were left out."""

    def __init__(self, room: RoomPort, clock: Clock, redact: Callable[[str], str] = str) -> None:
        self._room = room
        self._clock = clock
        self._redact = redact
        self._minute = 0
        self._written = 0
        self._left_out = 0
        self._writing: set[asyncio.Task[None]] = set()

    def refused(self, code: str, client: str, method: str, path: str) -> None:
        minute = self._clock.now() // (60 * SECOND)
        if minute != self._minute:
            self._minute, self._written = minute, 0
        if self._written >= PER_MINUTE:
            self._left_out += 1
            return
        self._written += 1
        path = self._redact(path)[:200]
        data = {
            "code": code,
            "client": client,
            "method": method,
            "path": path,
            "left_out": self._left_out,
        }
        self._left_out = 0
        log.warning("refused %s %s from %s: %s", method, path, client, code)
        self.note("api.refused", data)

    def note(self, key: str, data: dict[str, object]) -> None:
        """Written beside the answer: an audit must not make anybody wait."""
        task = asyncio.get_running_loop().create_task(self._write(key, data))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, key: str, data: dict[str, object]) -> None:
        with contextlib.suppress(PostroomError):
            await self._room.run(c.AddRecord(kind=KIND, key=key, data=data, actor="api"))

    async def settled(self) -> None:
        """When everything noted so far is kept."""
        await asyncio.gather(*self._writing)
