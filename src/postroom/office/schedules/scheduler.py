"""The scheduler: it sleeps until the next time of any schedule, and sends what is due.

Leadership only saves work. That a time is dealt with once follows from the versions of what is written: of
two that send for the same time, one finds that the schedule has gone on already, and sends nothing.
"""

import asyncio
import heapq
import logging
from collections.abc import Callable

import msgspec

from postroom.clock import SECOND, Clock
from postroom.errors import Conflict, DocumentChanged, IdempotencyConflict, PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.model import Document
from postroom.kernel.states import OPEN
from postroom.office import queues
from postroom.office.documents import everything
from postroom.office.intake.routing import Addressee, OfficeDirectory
from postroom.office.ports import RoomPort
from postroom.office.schedules import firing
from postroom.office.schedules.due import DueTimes, due
from postroom.office.schedules.model import PROGRESS, SCHEDULE, Missed, StoredSchedule, filed, slot_key

log = logging.getLogger("postroom.schedules")

AT_ONCE = 200
PAUSE_S = 2.0
LOOK_S = 5.0
# What was dealt with this far ahead was dealt with under a clock that was wrong.
AHEAD = 3600 * SECOND
PAGE = 100
STILL_RUNNING = "what it sent before is still worked on"


class Scheduler:
    def __init__(
        self,
        room: RoomPort,
        directory: Callable[[], OfficeDirectory],
        clock: Clock,
        *,
        overlap: bool = False,
    ) -> None:
        """With `overlap` a schedule is sent although what it sent before is still worked on."""
        self._room = room
        self._overlap = overlap
        self._clock = clock
        self._leader = room.leader("schedules")
        self._term = 0
        self._directory = directory
        self._known: dict[str, StoredSchedule] = {}
        self._times: list[tuple[int, str, int, int]] = []
        self._stale = True
        self._looked_at = 0
        self._changes = -1

    def wake(self) -> None:
        """Schedules were changed."""
        self._stale = True
        self._leader.wake()

    async def run(self) -> None:
        await self._leader.run_rounds(self._work)

    async def round(self) -> float:
        """Everything that is due now, if this process leads; the seconds until something may be due again."""
        return await self._leader.round(self._work)

    def stop(self) -> None:
        self._leader.stop()

    async def _work(self) -> float:
        now = self._clock.now()
        if self._term != self._leader.term:
            # Another may have led until now: nothing that is remembered need still be so.
            self._term, self._stale = self._leader.term, True
        if self._stale or not 0 <= now - self._looked_at < LOOK_S * SECOND:
            changes = await self._room.document_changes(SCHEDULE)
            if self._stale or changes != self._changes or now < self._looked_at:
                await self._look()
                self._changes = changes
            self._looked_at = now
        late = False
        while ready := self._ready(now):
            # Side by side, so that they share commits.
            done = await asyncio.gather(*(self._send(one, now) for one in ready))
            late = late or not all(done)
        if late:
            return PAUSE_S
        if not self._times:
            return LOOK_S
        return min(LOOK_S, max(0.0, (self._times[0][0] - self._clock.now()) / SECOND))

    # what is known

    async def _look(self) -> None:
        """Read what was changed; what is still the same keeps its next time."""
        self._stale = False
        progress = {document.key: document async for document in everything(self._room, PROGRESS)}
        found: dict[str, StoredSchedule] = {}
        async for document in everything(self._room, SCHEDULE):
            one = self._read(document, progress.get(document.key))
            if one is not None:
                found[document.key] = one
        now = self._clock.now()
        for key, one in found.items():
            if one.progress.after > now + AHEAD:
                found[key] = await self._put_back(one, now)
        changed = [one for key, one in found.items() if not _same(self._known.get(key), one)]
        self._known = found
        for number, one in enumerate(changed):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)  # thousands take a while, and others wait
            self._remember(one)
        if len(self._times) > 2 * len(found) + AT_ONCE:
            self._times = []
            for one in found.values():
                self._remember(one)

    async def _put_back(self, one: StoredSchedule, now: int) -> StoredSchedule:
        """Or the schedule would sleep until the clock has come as far again. Times that were sent for
        keep their keys, so they are not sent for again."""
        progress = msgspec.structs.replace(one.progress, after=now)
        data = msgspec.to_builtins(progress)
        key, version = one.schedule.id, one.progress_version
        try:
            version = await self._room.run(
                c.PutDocument(
                    kind=PROGRESS, key=key, data=data, expect=version, actor=self._room.actor, history=False
                )
            )
        except DocumentChanged:
            self._stale = True
            return one
        log.warning("the schedule %s goes on from now: the clock was put back", one.schedule.label)
        return StoredSchedule(one.schedule, one.version, progress, version)

    def _read(self, document: Document, progress: Document | None) -> StoredSchedule | None:
        try:
            return filed(document, progress)
        except (ValueError, TypeError) as error:
            log.error("the schedule %s cannot be read: %s", document.key, error)
            return None

    def _remember(self, one: StoredSchedule) -> None:
        self._known[one.schedule.id] = one
        if not one.schedule.enabled:
            return
        try:
            following = one.schedule.next(one.progress.after)
        except Exception as error:
            # One that cannot be worked out must not stop the others.
            log.error("the schedule %s is never sent: %s", one.schedule.label, error)
            return
        if following is not None:
            entry = (following, one.schedule.id, one.version, one.progress_version)
            heapq.heappush(self._times, entry)

    def _ready(self, now: int) -> list[StoredSchedule]:
        """Some of those whose time has come. Entries of what has changed since are dropped."""
        ready: list[StoredSchedule] = []
        while self._times and self._times[0][0] <= now and len(ready) < AT_ONCE:
            _, key, version, progress_version = heapq.heappop(self._times)
            one = self._known.get(key)
            if one and (one.version, one.progress_version) == (version, progress_version):
                ready.append(one)
        return ready

    # what is sent

    async def _send(self, one: StoredSchedule, now: int) -> bool:
        """Whether it is dealt with; else it is tried again soon."""
        try:
            return await self._sent(one, now)
        except StoreClosed:
            raise
        except PostroomError as error:
            level = logging.WARNING if isinstance(error, Conflict) else logging.ERROR
            log.log(level, "the schedule %s waits: %s", one.schedule.label, error)
        except Exception:
            log.exception("the schedule %s waits", one.schedule.label)
        self._stale = True
        self._known.pop(one.schedule.id, None)
        return False

    async def _sent(self, one: StoredSchedule, now: int) -> bool:
        schedule = one.schedule
        come = due(one, now)
        if come is None:
            self._remember(one)
            return True
        to = self._directory().find(schedule.to)
        problem = "" if to else f'there is no agent or team "{schedule.to}"'
        if problem:
            log.error("the schedule %s was not sent: %s", schedule.label, problem)
        elif await self._is_running(one):
            problem, come = STILL_RUNNING, DueTimes((), come.after, True)
            log.warning("the schedule %s was not sent: %s", schedule.label, problem)
        elif come.skipped:
            log.warning("the schedule %s missed times, which were passed over", schedule.label)
        try:
            await self._commit(one, come, to, problem)
        except DocumentChanged:
            self.wake()
            return True
        except IdempotencyConflict:
            # It was sent for this time before, in other words, under a clock that ran ahead.
            await self._commit(one, DueTimes((), come.after, True), to)
        return True

    async def _is_running(self, one: StoredSchedule) -> bool:
        """Whether what it sent last is still open, so that another would pile up. Who wants all that was
        missed wants each."""
        last = one.progress.last_slot
        if self._overlap or last is None or one.schedule.missed is Missed.ALL:
            return False
        page = await self._room.messages(
            scope=queues.SCOPE, correlation_id=slot_key(one.schedule.id, last), state=tuple(OPEN), limit=PAGE
        )
        return any(not queues.is_outbox(message.queue) for message in page.messages)

    async def _commit(
        self, one: StoredSchedule, come: DueTimes, to: Addressee | None, problem: str = ""
    ) -> None:
        progress = firing.gone_on(one, come, to, problem)
        versions = await self._room.run(firing.unit(one, come, progress, to, self._room.actor))
        if one.schedule.at is None:
            self._remember(StoredSchedule(one.schedule, one.version, progress, versions[0]))
        else:
            self._remember(StoredSchedule(firing.ended(one.schedule), versions[1], progress, versions[0]))


def _same(before: StoredSchedule | None, after: StoredSchedule) -> bool:
    if before is None:
        return False
    return (before.version, before.progress_version) == (after.version, after.progress_version)
