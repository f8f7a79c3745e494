"""Follows the ledger: every event after a position, in order, read when whoever handles them asks for more.

With a name the position is kept in the store, after the events before it were handled: none is ever missed,
and after a crash some come again, unless what follows from them is committed together with the position.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from postroom.errors import EventsPruned
from postroom.kernel import commands as c
from postroom.kernel.ledger import Event
from postroom.runtime.settling import settle

if TYPE_CHECKING:
    from postroom.runtime.room import Room

log = logging.getLogger("postroom.ledger")

EVENTS_AT_ONCE = 500
POLL_S = 5.0


class LedgerReaderOptions(TypedDict, total=False):
    after: int | None
    """Where a reader that has no position yet begins: after this event; None, the default, is now."""
    save_s: float
    save_events: int
    """How long a position may lie unsaved, and over how many events: after a crash these come again."""
    before_save: Callable[[], Awaitable[bool]]
    """What must be done before the position may be kept; whether it could be done."""


class LedgerReader:
    def __init__(self, room: "Room", name: str = "", **options: Unpack[LedgerReaderOptions]) -> None:
        self._room = room
        self._name = name
        self._after = after = options.get("after")
        self._save_s = options.get("save_s", 1.0)
        self._save_events = options.get("save_events", EVENTS_AT_ONCE)
        self._before_save = options.get("before_save")
        self._saved: int | None = None
        self._save_at = 0.0
        self._held_up = False
        self.position = after or 0
        """All events up to here are handled."""

    async def open(self) -> int:
        """Begin where the reader of this name stands, whoever read for it last."""
        kept = {each.name: each.seq for each in await self._room.positions()} if self._name else {}
        if self._name in kept:
            self.position = self._saved = kept[self._name]
        else:
            self.position = (await self._room.head()).seq if self._after is None else self._after
            self._saved = None
            await self.save()
        return self.position

    async def events(self, *, follow: bool = True) -> AsyncGenerator[Event, None]:
        """One by one; an event counts as handled when the next is asked for."""
        async with contextlib.aclosing(self.pages(follow=follow)) as pages:
            async for page in pages:
                for event in page:
                    yield event
                    await self.advance(event.seq)

    async def pages(self, *, follow: bool = True) -> AsyncGenerator[list[Event], None]:
        """As many at once as are there; a page counts as handled when the next is asked for."""
        with self._woken_by_commits() as woken:
            if self._name or self._after is None:
                await self.open()
            while True:
                woken.clear()
                page = await self._read()
                if page:
                    yield page
                    await self.advance(page[-1].seq)
                if len(page) == EVENTS_AT_ONCE:
                    continue
                if not follow:
                    return
                await self._wait(woken)

    async def advance(self, seq: int) -> None:
        """Events up to here are handled; the position is kept when it is time, of several at once."""
        if self.position == self._saved:
            self._save_at = _now() + self._save_s
        self.position = max(self.position, seq)
        await self._save_if_due()

    async def commit(self, seq: int, commands: Sequence[c.Command]) -> list[Any]:
        """What follows from the events up to here, and the position, all or nothing."""
        unit = c.Unit(commands=(*commands, self._set_position(seq)), actor=self._room.actor, tenant="")
        done = await settle(self._room.run(unit), lambda _: self._note_saved(seq))
        return done[:-1]

    async def save(self, *, hold: bool = True) -> None:
        """Keep the position now; without `hold`, the pruner no longer waits for this reader."""
        if not self._name or (self.position == self._saved and hold):
            return
        self._save_at = _now() + self._save_s
        if self._before_save is not None and not await self._before_save():
            self._held_up = True
            return
        seq = self.position
        await settle(self._room.run(self._set_position(seq, hold=hold)), lambda _: self._note_saved(seq))

    def _set_position(self, seq: int, *, hold: bool = True) -> c.SetPosition:
        return c.SetPosition(
            name=self._name, seq=seq, hold=hold, expect=self._saved, actor=self._room.actor, tenant=""
        )

    def _note_saved(self, seq: int) -> None:
        self.position = max(self.position, seq)
        self._saved = seq
        self._held_up = False
        self._save_at = _now() + self._save_s

    async def _save_if_due(self) -> None:
        if not self._name:
            return
        many = not self._held_up and self.position - (self._saved or 0) >= self._save_events
        if many or _now() >= self._save_at:
            await self.save()

    async def _read(self) -> list[Event]:
        """What was pruned before a reader of a name came back cannot be read again; it goes on after it."""
        while True:
            try:
                return await self._room.read_events(self.position, EVENTS_AT_ONCE)
            except EventsPruned as gap:
                if not self._name:
                    raise
                log.warning("%s missed events: %s", self._name, gap)
                self.position = gap.data["first"] - 1

    async def _wait(self, woken: asyncio.Event) -> None:
        """Until something is committed, and never longer than the position may lie unsaved."""
        unsaved = self._name and self.position != self._saved
        longest = max(0.0, self._save_at - _now()) if unsaved else POLL_S
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(longest, POLL_S)):
                await woken.wait()
        if unsaved:
            await self._save_if_due()

    @contextlib.contextmanager
    def _woken_by_commits(self) -> Iterator[asyncio.Event]:
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is gone, and nobody waits any more
                loop.call_soon_threadsafe(woken.set)

        wakeups = self._room._core.wakeups
        wakeups.follow(wake)
        try:
            yield woken
        finally:
            wakeups.unfollow(wake)


def _now() -> float:
    return asyncio.get_running_loop().time()
