"""Rounds that one process at a time makes for all: it leads, does what is due, and sleeps until woken."""

import asyncio
import contextlib
import logging
import uuid
from abc import ABC, abstractmethod

from postroom.clock import SECOND, Clock
from postroom.errors import PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.office.ports import RoomPort

log = logging.getLogger("postroom.rounds")

LEASE_S = 15.0
# The longest sleep: clocks are put right, other processes change things, and the lease must be renewed.
LOOK_S = 5.0
PAUSE_S = 2.0


class LeaderLoop(ABC):
    name: str

    def __init__(self, room: RoomPort, clock: Clock) -> None:
        self._room = room
        self._clock = clock
        self._holder = f"{room.actor}/{uuid.uuid4().hex[:8]}"
        self._woken = asyncio.Event()
        self._stopping = False
        self._led_at: int | None = None
        self._took_over = True
        """Another may have led until now: nothing that is remembered need still be so."""

    @abstractmethod
    async def work(self) -> float:
        """Everything that is due now; the seconds until something may be due again."""

    def wake(self) -> None:
        self._woken.set()

    def stop(self) -> None:
        self._stopping = True
        self._woken.set()

    async def round(self) -> float:
        return await self.work() if await self._leads() else PAUSE_S

    async def run(self) -> None:
        try:
            while not self._stopping:
                self._woken.clear()
                try:
                    seconds = await self.round()
                except StoreClosed:
                    return
                except PostroomError as error:
                    log.error("the rounds of %s pause: %s", self.name, error)
                    seconds = PAUSE_S
                except Exception:
                    log.exception("the rounds of %s stumbled", self.name)
                    seconds = PAUSE_S
                if self._stopping:
                    return
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(seconds, LOOK_S)):
                        await self._woken.wait()
        finally:
            with contextlib.suppress(PostroomError):
                await self._lead(0)

    async def _leads(self) -> bool:
        """Renewed when half of the lease is over, so that idle rounds do not keep the disk awake."""
        now = self._clock.now()
        if self._led_at is None or not 0 <= now - self._led_at < LEASE_S / 2 * SECOND:
            before, self._led_at = self._led_at, now if await self._lead(LEASE_S) else None
            if before is None or not 0 <= now - before < LEASE_S * SECOND:
                self._took_over = True
        return self._led_at is not None

    async def _lead(self, seconds: float) -> bool:
        return await self._room.run(
            c.Lead(name=self.name, holder=self._holder, seconds=seconds, actor=self._holder)
        )
