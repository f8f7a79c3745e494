"""The clerk reads the ledger as it is written and does what follows from what has happened.

It remembers how far it has come, after what it did is done; so after a crash it may see an event again, and
every duty must take that. One process has the clerk at a time.
"""

import asyncio
import contextlib
import logging
import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from typing import Protocol

from postroom.clock import Clock, SystemClock
from postroom.errors import EventsPruned, PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.ledger import Event
from postroom.office import queues
from postroom.office.combined_replies import ReplyCombiner
from postroom.office.file_retention import FileRetention
from postroom.office.ports import RoomPort

log = logging.getLogger("postroom.clerk")

NAME = "office-clerk"
PAUSE_S = 1.0
WAIT_S = 5.0
EVENTS_TOGETHER = 200
TRIES = 3
SAVE_S = 0.25
TIDY_S = 3600.0
# Of tries to save: trouble that lasts is told again after some minutes.
TELL_EVERY = 1000


class Duty(Protocol):
    async def see(self, event: Event) -> None: ...


class Keeping(Protocol):
    """A duty that does its work for several events together."""

    async def see(self, event: Event) -> None: ...

    async def flush(self) -> None: ...


class LedgerFollower:
    def __init__(
        self,
        room: RoomPort,
        gatherer: ReplyCombiner,
        duties: Sequence[Duty] = (),
        keepers: Sequence[Keeping] = (),
        *,
        shelf: FileRetention | None = None,
        clock: Clock | None = None,
        lease_s: float = 20.0,
    ) -> None:
        self._room = room
        self._gatherer = gatherer
        self._duties = [gatherer, *duties, *keepers]
        self._keepers = keepers
        self._shelf = shelf
        self._clock = clock or SystemClock()
        self._lease_s = lease_s
        self._stopping = asyncio.Event()
        self._holder = f"{room.actor}/{uuid.uuid4().hex[:8]}"
        self._seen = 0
        self._saved = 0
        self._saving = asyncio.Lock()
        self._held_up = 0
        self._trouble: Counter[tuple[int, int]] = Counter()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    if await self._lead(self._lease_s):
                        await self._watch()
                    else:
                        await self._sleep(PAUSE_S)
                except StoreClosed:
                    return
                except PostroomError as error:
                    log.error("the clerk pauses: %s", error)
                    await self._sleep(PAUSE_S)
                except Exception:
                    log.exception("the clerk stumbled")
                    await self._sleep(PAUSE_S)
        finally:
            with contextlib.suppress(PostroomError):
                await self._lead(0)

    async def _watch(self) -> None:
        """Until it is to stop, fails, or another process has the clerk."""
        tasks = [
            asyncio.create_task(work)
            for work in (
                self._follow(),
                self._save_now_and_then(),
                self._gather(),
                self._tidy(),
                self._stay(),
                self._stopped(),
            )
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(tasks)
        for task in done:
            task.result()
        if self._stopping.is_set():
            await self._save()

    async def _stopped(self) -> None:
        await self._stopping.wait()

    async def _stay(self) -> None:
        while True:
            await asyncio.sleep(self._lease_s / 3)
            if not await self._lead(self._lease_s):
                return

    async def _follow(self) -> None:
        known = {position.name: position.seq for position in await self._room.positions()}
        self._seen = self._saved = known.get(NAME, 0)
        while True:
            try:
                async with aclosing(self._room.events(self._seen, follow=True)) as events:
                    async for event in events:
                        for number, duty in enumerate(self._duties):
                            await self._show(event, number, duty)
                        self._seen = event.seq
                        if self._seen - self._saved >= EVENTS_TOGETHER and not self._held_up:
                            await self._save()
            except EventsPruned as error:
                self._seen = error.data["first"] - 1

    async def _show(self, event: Event, number: int, duty: Duty) -> None:
        """One event that a duty cannot take must not stop all that come after it."""
        trouble = (event.seq, number)
        if self._trouble[trouble] >= TRIES:
            return
        try:
            await duty.see(event)
        except StoreClosed:
            raise
        except Exception:
            self._trouble[trouble] += 1
            if self._trouble[trouble] < TRIES:
                raise
            log.exception("event %d was passed over by %s", event.seq, type(duty).__name__)

    async def _save_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(SAVE_S)
            await self._save()

    async def _save(self) -> None:
        """First all that was gathered, then the position; never the other way round."""
        async with self._saving:
            seen = self._seen
            if seen == self._saved or not await self._flushed():
                return
            await self._room.run(c.SetPosition(name=NAME, seq=seen, hold=True, actor=self._holder))
            self._saved = seen

    async def _flushed(self) -> bool:
        """A disk that is full must not keep people from their answers: the others go on, and what could not
        be written is tried again."""
        for keeper in self._keepers:
            try:
                await keeper.flush()
            except PostroomError:
                raise
            except Exception:
                if self._held_up % TELL_EVERY == 0:
                    log.exception("%s could not write; it tries again until it can", type(keeper).__name__)
                self._held_up += 1
                return False
        self._held_up = 0
        return True

    async def _tidy(self) -> None:
        while True:
            if self._shelf is not None:
                await asyncio.to_thread(self._shelf.tidy, self._clock.now())
            await asyncio.sleep(TIDY_S)

    async def _gather(self) -> None:
        """Conversations whose time-out has come."""
        while True:
            due = await self._room.claim(queues.GATHER, limit=20, wait=WAIT_S, worker=self._holder)
            for envelope in due:
                await self._gatherer.overdue(envelope)

    async def _lead(self, seconds: float) -> bool:
        return await self._room.run(
            c.Lead(name=NAME, holder=self._holder, seconds=seconds, actor=self._holder)
        )

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """A wait that ends at the very moment it is cancelled can swallow the cancellation: so say it again."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=1)
