"""Leadership by a lease in the store: of many processes one leads, and another takes over when it is gone.

Who leads works only as long as its own clock says that the lease stands; it never assumes a renewal.
"""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from postroom.clock import Clock, micros
from postroom.errors import PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.runtime.settling import settle

log = logging.getLogger("postroom.leader")

LEASE_S = 15.0
# How long to wait before asking again: for a leadership that another has, and after an error.
RETRY_S = 2.0
PAUSE_S = 1.0
# The longest sleep between rounds: clocks are put right, and other processes change things.
LOOK_S = 5.0


class CommandRunner(Protocol):
    @property
    def actor(self) -> str: ...

    def run(self, command: c.Command) -> Awaitable[Any]: ...


class Lease:
    """What a process knows of a leadership that it takes by lease; others ask the store for it."""

    def __init__(self, name: str, holder: str, clock: Clock, lease_s: float = LEASE_S) -> None:
        self.name = name
        self.holder = holder
        self.lease_s = lease_s
        self.term = 0
        """How often it was taken anew. Between two terms another may have led, and changed anything."""
        self._clock = clock
        self._asked_at = 0
        self._taken_at: int | None = None

    @property
    def leads(self) -> bool:
        return self._is_younger_than(self.lease_s)

    @property
    def is_due(self) -> bool:
        """Whether the store must be asked before work goes on. Half a lease is left for a store that is slow,
        and an idle process does not keep the disk awake."""
        return not self._is_younger_than(self.lease_s / 2)

    def request(self) -> c.Lead:
        """The command that takes or renews it. The lease counts from here, not from the answer."""
        self._asked_at = self._clock.now()
        return self._command(self.lease_s)

    def record(self, granted: bool) -> None:
        """What the store answered to the last request."""
        if granted and not self.leads:
            self.term += 1
        self._taken_at = self._asked_at if granted else None

    def resignation(self) -> c.Lead:
        self._taken_at = None
        return self._command(0)

    def _command(self, seconds: float) -> c.Lead:
        return c.Lead(name=self.name, holder=self.holder, seconds=seconds, actor=self.holder)

    def _is_younger_than(self, seconds: float) -> bool:
        """A clock that was put back tells nothing, so it counts as old."""
        return self._taken_at is not None and 0 <= self._clock.now() - self._taken_at < micros(seconds)


class Leader:
    def __init__(self, room: CommandRunner, name: str, clock: Clock, *, lease_s: float = LEASE_S) -> None:
        self._room = room
        self._lease = Lease(name, f"{room.actor}/{uuid.uuid4().hex[:8]}", clock, lease_s)
        self._stopping = asyncio.Event()
        self._woken = asyncio.Event()

    @property
    def holder(self) -> str:
        return self._lease.holder

    @property
    def leads(self) -> bool:
        return self._lease.leads

    @property
    def term(self) -> int:
        return self._lease.term

    async def lead(self) -> bool:
        """Whether this process leads now. Takes the leadership if it is free; renews it when it is time."""
        if self._lease.is_due:
            await settle(self._room.run(self._lease.request()), self._lease.record)
        return self._lease.leads

    async def resign(self) -> None:
        """Hand over to whoever asks next."""
        if self._lease.term:
            await self._room.run(self._lease.resignation())

    def stop(self) -> None:
        self._stopping.set()

    def wake(self) -> None:
        """The next round comes now."""
        self._woken.set()

    async def run(
        self,
        *work: Callable[[], Coroutine[Any, Any, None]],
        finish: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Does all this work side by side while this process leads, until one returns or `stop` is called.

        It is cancelled when the leadership is lost, and begins anew when it is taken again or after an error.
        `finish` is called before the leadership is handed over, never after it was lost.
        """
        try:
            while not self._stopping.is_set():
                try:
                    if not await self.lead():
                        await _sleep(min(RETRY_S, self._lease.lease_s / 3), self._stopping)
                    elif await self._work_while_leading(work):
                        return
                except StoreClosed:
                    return
                except PostroomError as error:
                    log.error("%s pauses: %s", self._lease.name, error)
                    await _sleep(PAUSE_S, self._stopping)
                except Exception:
                    log.exception("%s failed; it begins again", self._lease.name)
                    await _sleep(PAUSE_S, self._stopping)
        finally:
            if finish is not None and self.leads:
                with contextlib.suppress(PostroomError):
                    await finish()
            with contextlib.suppress(PostroomError):
                await self.resign()

    async def run_rounds(self, work: Callable[[], Awaitable[float]]) -> None:
        """Does `work` again and again while this process leads; it tells the seconds until the next round."""

        async def rounds() -> None:
            while True:
                self._woken.clear()
                await _sleep(min(await self.round(work), LOOK_S), self._woken)

        await self.run(rounds)

    async def round(self, work: Callable[[], Awaitable[float]]) -> float:
        """One round, if this process leads; the seconds until the next."""
        return await work() if await self.lead() else RETRY_S

    async def _work_while_leading(self, work: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> bool:
        """Whether some of the work has ended by itself."""
        working = [asyncio.create_task(each()) for each in work]
        tasks = [*working, asyncio.create_task(self._renew()), asyncio.create_task(self._until_stopped())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            ended = any(task.done() for task in working)
        finally:
            await _cancel(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()
        return ended

    async def _until_stopped(self) -> None:
        await self._stopping.wait()

    async def _renew(self) -> None:
        """Until the leadership is lost, or was: between two terms another may have led. A store that fails is
        asked again while the lease stands."""
        term = self.term
        while True:
            await asyncio.sleep(self._lease.lease_s / 4)
            try:
                if not await self.lead():
                    log.warning("%s is led by another process now", self._lease.name)
                    return
                if self.term != term:
                    log.warning(
                        "the lease of %s was over for a while; its work begins again", self._lease.name
                    )
                    return
            except PostroomError as error:
                log.warning("the lease of %s was not renewed: %s", self._lease.name, error)
                if not self.leads:
                    return


async def _sleep(seconds: float, unless: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await unless.wait()


async def _cancel(tasks: list["asyncio.Task[None]"]) -> None:
    """Cancels until all have ended: a wait that ends at that very moment can swallow a cancellation."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=1)
