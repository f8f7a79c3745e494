"""What no platform confirmed and nobody sent again is kept as long as dead letters are, and not for ever.

That it was not confirmed stays with the reply's message.
"""

import contextlib
import logging

import msgspec

from postroom.channels.delivery_plan import DELIVERY, DeliveryPlan
from postroom.channels.pauses import Pauses, Stopping
from postroom.clock import SECOND, Clock
from postroom.errors import PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.office.ports import RoomPort

log = logging.getLogger("postroom.channels")

LOOK_S = 3600.0
PAGE = 200


class UnconfirmedRetention:
    def __init__(self, room: RoomPort, channel: str, clock: Clock, keep_s: float) -> None:
        self._room = room
        self._channel = channel
        self._clock = clock
        self._keep = round(keep_s * SECOND)

    async def run(self, pauses: Pauses) -> None:
        with contextlib.suppress(Stopping, StoreClosed):
            while True:
                try:
                    await self.forget_old()
                except StoreClosed:
                    raise
                except PostroomError as error:
                    log.warning("%s: old unconfirmed replies stay for now: %s", self._channel, error)
                await pauses.sleep(LOOK_S)

    async def forget_old(self) -> None:
        """What is still on its way is never old."""
        oldest = self._clock.now() - self._keep
        after = ""
        while page := await self._room.documents(DELIVERY, after=after, limit=PAGE):
            after = page[-1].key
            for document in page:
                plan = msgspec.convert(document.data, DeliveryPlan)
                is_old = document.updated_at < oldest and plan.next_piece() is None
                if is_old and plan.channel == self._channel:
                    drop = c.DropDocument(kind=DELIVERY, key=document.key, expect=document.version)
                    await self._room.run(drop)
