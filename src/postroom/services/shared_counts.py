"""Shares what limits of requests have counted with the other processes on the same store, once a second. In
between, and while the store is away, each process goes by what it knows."""

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from postroom.errors import PostroomError
from postroom.kernel import service_commands
from postroom.runtime.room import Room

log = logging.getLogger("postroom.services")

SHARE_S = 1.0
# Less than this part of a limit is not told: it hardly matters, and there may be very many.
LEAST_PART = 20
MOST_SHARED = 1000


class CountedRequests(Protocol):
    """A limit that counts requests of the last minute by name."""

    def counts(self) -> dict[str, int]: ...
    def learn(self, others: Mapping[str, int]) -> None:
        """What the other processes have counted, in place of what they had before."""
        ...


def is_notable(count: float, limit: int) -> bool:
    return count > 0 and count * LEAST_PART >= limit


class SharedCounts:
    def __init__(self, room: Room) -> None:
        self._room = room
        self._process = uuid.uuid4().hex
        self._sources: list[CountedRequests] = []

    def add(self, source: CountedRequests) -> None:
        self._sources.append(source)

    async def share(self) -> None:
        counted: Counter[str] = Counter()
        for source in self._sources:
            counted.update(source.counts())
        most = dict(counted.most_common(MOST_SHARED))
        others: Mapping[str, int] = {}
        try:
            others = await self._room.run(
                service_commands.ShareRequestCounts(process=self._process, counts=most, actor="limits")
            )
        except PostroomError as error:
            log.warning("what other processes have let through is not known at the moment: %s", error)
        for source in self._sources:
            source.learn(others)

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self.share()
            await asyncio.sleep(SHARE_S)
