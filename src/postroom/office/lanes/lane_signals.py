"""Words to the lanes of other processes: that somebody wrote more, or that work is no longer wanted.

A lane finds out by itself when it extends its claims; a word only makes it sooner, and may be lost.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing

from postroom.errors import PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.ledger import Event
from postroom.kernel.states import Change
from postroom.office import queues
from postroom.office.ports import RoomPort

log = logging.getLogger("postroom.lanes")

INTERRUPT = "office.interrupt"
STEER = "office.steer"
PAUSE_S = 1.0


class LaneSignals:
    def __init__(
        self,
        room: RoomPort,
        look_up: Callable[[], None],
        interrupt: Callable[[str, str], None],
        steer: Callable[[str, str], None],
    ) -> None:
        self._room = room
        self._look_up = look_up
        self._heard = {f"record.{INTERRUPT}": interrupt, f"record.{STEER}": steer}
        self._sending: set[asyncio.Task[None]] = set()

    def send_interrupt(self, channel: str, sender_id: str) -> None:
        self._begin_sending(INTERRUPT, channel, sender_id)

    def send_steer(self, channel: str, sender_id: str) -> None:
        self._begin_sending(STEER, channel, sender_id)

    def _begin_sending(self, kind: str, channel: str, sender_id: str) -> None:
        task = asyncio.create_task(self._send(kind, channel, sender_id))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, kind: str, channel: str, sender_id: str) -> None:
        try:
            await self._room.run(
                c.AddRecord(kind=kind, key=f"{channel}/{sender_id}", data={}, actor=self._room.actor)
            )
        except PostroomError as error:
            log.warning("the turns for %s on %s were not interrupted: %s", sender_id, channel, error)

    async def run(self) -> None:
        """Until cancelled: hears what happens from now on."""
        while True:
            try:
                async with aclosing(self._room.ledger_reader().events()) as events:
                    async for event in events:
                        self._hear(event)
            except StoreClosed:
                return
            except PostroomError as error:
                log.warning("words to lanes are not heard for a moment: %s", error)
                await asyncio.sleep(PAUSE_S)

    def _hear(self, event: Event) -> None:
        if (tell := self._heard.get(event.type)) is not None:
            channel, _, sender_id = event.details["key"].partition("/")
            tell(channel, sender_id)
        elif event.type == Change.CANCELLED and queues.is_inbox(event.queue or ""):
            self._look_up()
