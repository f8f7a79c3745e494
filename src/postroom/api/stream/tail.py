"""The tail of the ledger as events, read once for everybody. Listeners pull; none can make another wait.

What happened lately is kept here. Who fell further behind reads the ledger itself, page by page, until it has
caught up, so nothing is lost or repeated, and memory is bounded.
"""

import asyncio
import contextlib
import logging
from bisect import bisect_right
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from postroom.api.stream.frames import LAST_PART, EventFilter, Frame, StreamPosition, frame
from postroom.errors import EventsPruned, PostroomError, StoreClosed, StoreFailed
from postroom.kernel.ledger import Event
from postroom.runtime import Room

log = logging.getLogger("postroom.events")

KEPT = 4096
PAGE = 500
KEEP_ALIVE = b": keep-alive\n\n"
# Events that come within this time go out together: with many listeners that saves most of the work.
GATHER_S = 0.02
PER_LISTENER_S = 0.0002
CHANGED = "The past has changed: an older copy of the store was restored. Read everything anew."

Translate = Callable[[Event], Awaitable[Sequence[tuple[str, Mapping[str, Any]]]]]
"""What clients are told of a ledger event: names and data, none for most."""


async def nothing(event: Event) -> Sequence[tuple[str, Mapping[str, Any]]]:
    return ()


class EventTail:
    def __init__(
        self, room: Room, translate: Translate, *, kept: int = KEPT, keep_alive_s: float = 15.0
    ) -> None:
        self._room = room
        self._translate = translate
        self._kept = kept
        self._keep_alive_s = keep_alive_s
        self._frames: list[Frame] = []
        self._places: list[StreamPosition] = []
        self._begin = StreamPosition(0)
        """Frames after this place are all here."""
        self._end = StreamPosition(0)
        self._told_so_far = 0
        self._news = asyncio.Event()
        self._closed = False
        self._task: asyncio.Task[None] | None = None
        self.listeners = 0

    @property
    def end(self) -> StreamPosition:
        return self._end

    async def open(self) -> None:
        head = await self._room.head()
        self._begin = self._end = StreamPosition(head.seq, LAST_PART)
        self._task = asyncio.create_task(self._read())

    async def close(self) -> None:
        self._closed = True
        self._news.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _read(self) -> None:
        while not self._closed:
            try:
                async with contextlib.aclosing(self._room.event_pages(self._end.seq, follow=True)) as pages:
                    async for page in pages:
                        before = self._told_so_far
                        try:
                            for event in page:
                                self._take(event, await self._told(event))
                        finally:
                            if self._told_so_far > before:
                                self._ring()
                        await asyncio.sleep(GATHER_S + PER_LISTENER_S * min(self.listeners, 1000))
            except StoreClosed:
                return
            except EventsPruned as gap:
                # Listeners find the same gap in the ledger, and are told of it.
                self._frames, self._places = [], []
                self._begin = self._end = StreamPosition(gap.data["first"] - 1, LAST_PART)
            except PostroomError as error:
                log.error("the events pause: %s", error)
                await asyncio.sleep(1)

    async def _told(self, event: Event) -> list[Frame]:
        try:
            told = await self._translate(event)
        except (StoreClosed, StoreFailed):
            # It can be told when the store is back.
            raise
        except Exception:
            # One event that cannot be told must not silence all that come after it.
            log.exception("event %s (%s) cannot be told", event.seq, event.type)
            return []
        return [frame(StreamPosition(event.seq, part), name, data) for part, (name, data) in enumerate(told)]

    def _take(self, event: Event, frames: list[Frame]) -> None:
        self._end = StreamPosition(event.seq, LAST_PART)
        if not frames:
            return
        self._told_so_far += len(frames)
        self._frames += frames
        self._places += [each.at for each in frames]
        if len(self._frames) > 2 * self._kept:
            gone = len(self._frames) - self._kept
            self._begin = self._places[gone - 1]
            del self._frames[:gone], self._places[:gone]

    def _ring(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def listen(
        self, start: StreamPosition, wanted: EventFilter, until: StreamPosition | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Everything after `start` that is wanted, until the server closes; with `until` it ends after that
        place, or where there is nothing more."""
        at = start
        self.listeners += 1
        try:
            if at.seq > self._end.seq and at.seq > (head := await self._room.head()).seq:
                # What they have seen is not there any more: an older copy of the store was restored.
                at = StreamPosition(head.seq, LAST_PART)
                changed = {
                    "type": "events:changed",
                    "after": str(start),
                    "last": head.seq,
                    "message": CHANGED,
                }
                yield frame(at, "events:changed", changed).wire
            while not self._closed:
                news = self._news
                if until is not None:
                    # The ledger itself knows the end; what is kept here may be a moment behind it.
                    before = at
                    frames, at = await self._from_ledger(at)
                    if at == before:
                        return
                    frames = [each for each in frames if each.at <= until]
                elif at < self._begin:
                    frames, at = await self._from_ledger(at)
                else:
                    frames = self._frames[bisect_right(self._places, at) :]
                    at = max(at, self._end)
                    if not frames and not self._closed:
                        if not await self._wait_for(news):
                            yield KEEP_ALIVE
                        continue
                wire = b"".join([each.wire for each in frames if wanted(each)])
                if wire:
                    yield wire
                if until is not None and at >= until:
                    return
        finally:
            self.listeners -= 1

    async def _wait_for(self, news: asyncio.Event) -> bool:
        try:
            async with asyncio.timeout(self._keep_alive_s):
                await news.wait()
        except TimeoutError:
            return False
        return True

    async def _from_ledger(self, at: StreamPosition) -> tuple[list[Frame], StreamPosition]:
        """The next page for one who is behind; it ends at the latest where the kept part begins."""
        frames: list[Frame] = []
        try:
            # The event itself again: it may have been told only in part.
            after = max(0, at.seq - 1 if at.part < LAST_PART else at.seq)
            for event in await self._room.read_events(after, PAGE):
                frames += [each for each in await self._told(event) if each.at > at]
                at = StreamPosition(event.seq, LAST_PART)
        except EventsPruned as gap:
            first = gap.data["first"]
            missed = {"type": "events:pruned", "after": str(at), "first": first}
            return [frame(StreamPosition(first - 1, LAST_PART), "events:pruned", missed)], StreamPosition(
                first - 1, LAST_PART
            )
        return frames, at
