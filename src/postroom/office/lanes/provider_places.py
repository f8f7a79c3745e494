"""Places for turns at one provider over all processes: each is a lease in the store, kept while a turn runs.

It bounds what a provider is asked; a place that is lost because the store was away ends no turn.
"""

import asyncio
import contextlib
import logging
from types import TracebackType

from postroom.errors import PostroomError
from postroom.office.ports import LeaderPort, RoomPort

log = logging.getLogger("postroom.lanes")

LOOK_S = 0.5


class ProviderPlaces:
    """As a semaphore of asyncio: of this process first, so that its own turns wait in their order."""

    def __init__(self, room: RoomPort, provider: str, count: int, lease_s: float) -> None:
        self._room = room
        self._own = asyncio.Semaphore(count)
        self._names = [f"place/{provider}/{number}" for number in range(count)]
        self._lease_s = lease_s
        self._taken: list[tuple[LeaderPort, asyncio.Task[None]]] = []

    def locked(self) -> bool:
        """Whether a turn may have to wait. Without asking the store nobody knows."""
        return True

    async def __aenter__(self) -> None:
        await self._own.acquire()
        try:
            place = await self._take()
        except BaseException:
            self._own.release()
            raise
        self._taken.append((place, asyncio.create_task(self._renew(place))))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        place, renewing = self._taken.pop()
        try:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            with contextlib.suppress(PostroomError):
                await place.resign()
        finally:
            self._own.release()

    async def _take(self) -> LeaderPort:
        while True:
            for name in self._names:
                place = self._room.leader(name, lease_s=self._lease_s)
                if await place.lead():
                    return place
            await asyncio.sleep(LOOK_S)

    async def _renew(self, place: LeaderPort) -> None:
        while True:
            await asyncio.sleep(self._lease_s / 4)
            try:
                await place.lead()
            except PostroomError as error:
                log.warning("a place at a provider was not renewed: %s", error)
