"""Reads the ledger for the office and does what follows from what has happened.

The position is kept after the work is done: after a crash a duty may see an event again, and must take that.
One process at a time does this.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from typing import Protocol

from postroom.clock import Clock, SystemClock
from postroom.errors import PostroomError, StoreClosed, StoreFailed
from postroom.kernel.ledger import Event
from postroom.office import queues
from postroom.office.combined_replies import ReplyCombiner
from postroom.office.message_files import FilesAway
from postroom.office.ports import RoomPort

log = logging.getLogger("postroom.clerk")

NAME = "office-clerk"
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


class TidyFiles(Protocol):
    def tidy(self, now: int) -> int: ...


class LedgerFollower:
    def __init__(
        self,
        room: RoomPort,
        gatherer: ReplyCombiner,
        duties: Sequence[Duty] = (),
        keepers: Sequence[Keeping] = (),
        *,
        shelf: TidyFiles | None = None,
        clock: Clock | None = None,
        lease_s: float = 20.0,
    ) -> None:
        self._room = room
        self._gatherer = gatherer
        self._duties = [gatherer, *duties, *keepers]
        self._keepers = keepers
        self._shelf = shelf
        self._clock = clock or SystemClock()
        self._leader = room.leader(NAME, lease_s=lease_s)
        self._reader = room.ledger_reader(
            NAME, after=0, save_s=SAVE_S, save_events=EVENTS_TOGETHER, before_save=self._flush
        )
        self._failed_flushes = 0
        self._trouble: Counter[tuple[int, int]] = Counter()

    def stop(self) -> None:
        self._leader.stop()

    async def run(self) -> None:
        await self._leader.run(self._follow, self._gather, self._tidy, finish=self._reader.save)

    async def _follow(self) -> None:
        async with aclosing(self._reader.events()) as events:
            async for event in events:
                for number, duty in enumerate(self._duties):
                    await self._show(event, number, duty)

    async def _show(self, event: Event, number: int, duty: Duty) -> None:
        """One event that a duty cannot take must not stop all that come after it. A store that is away is
        waited for, however long."""
        trouble = (event.seq, number)
        if self._trouble[trouble] >= TRIES:
            return
        try:
            await duty.see(event)
        except (StoreClosed, StoreFailed):
            raise
        except Exception:
            self._trouble[trouble] += 1
            if self._trouble[trouble] < TRIES:
                raise
            log.exception("event %d was passed over by %s", event.seq, type(duty).__name__)

    async def _flush(self) -> bool:
        """A disk that is full must not keep people from their answers: the others go on, and what could not
        be written is tried again."""
        for keeper in self._keepers:
            try:
                await keeper.flush()
            except PostroomError:
                raise
            except Exception:
                if self._failed_flushes % TELL_EVERY == 0:
                    log.exception("%s could not write; it tries again until it can", type(keeper).__name__)
                self._failed_flushes += 1
                return False
        self._failed_flushes = 0
        return True

    async def _tidy(self) -> None:
        while True:
            await self.remove_old_files()
            await asyncio.sleep(TIDY_S)

    async def remove_old_files(self) -> None:
        """By a clock that jumped ahead everything is old, so not right after that."""
        if self._shelf is not None and self._room.may_delete():
            try:
                await asyncio.to_thread(self._shelf.tidy, self._clock.now())
            except FilesAway as error:
                log.warning("old files stay for now: %s", error)

    async def _gather(self) -> None:
        """Conversations whose time-out has come."""
        while True:
            due = await self._room.claim(queues.GATHER, limit=20, wait=WAIT_S, worker=self._leader.holder)
            for envelope in due:
                await self._gatherer.overdue(envelope)
