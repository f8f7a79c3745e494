"""A word to whoever waits long for an answer: it is still being worked on. Nothing depends on it."""

import asyncio
import contextlib
import logging

import msgspec

from postroom.channels.model import Address
from postroom.channels.pauses import Pauses, Stopping
from postroom.kernel import commands as c
from postroom.kernel.model import Message, NewMessage
from postroom.office import queues
from postroom.office.ports import RoomPort

log = logging.getLogger("postroom.channels")

STILL_AT_WORK = "office.waiting"
TEXT = "Still at work on it. /why tells more, /stop ends it."


class WaitingWords:
    def __init__(self, room: RoomPort, channel: str, pauses: Pauses, after_s: float) -> None:
        self._room = room
        self._channel = channel
        self._pauses = pauses
        self._after_s = after_s
        self._waiting: dict[str, asyncio.Task[None]] = {}

    def start(self, address: Address) -> None:
        if self._after_s and address.chat not in self._waiting:
            self._waiting[address.chat] = asyncio.create_task(self._tell(address))

    def stop(self, message: Message) -> None:
        """Something goes out to the chat; a word of our own is not what the person waits for."""
        if message.message_type == STILL_AT_WORK or "address" not in message.metadata:
            return
        if task := self._waiting.pop(message.metadata["address"]["chat"], None):
            task.cancel()

    async def close(self) -> None:
        tasks, self._waiting = list(self._waiting.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _tell(self, address: Address) -> None:
        with contextlib.suppress(Stopping):
            await self._pauses.sleep(self._after_s)
            message = NewMessage(
                body={"text": TEXT},
                message_type=STILL_AT_WORK,
                channel=self._channel,
                metadata={"address": msgspec.to_builtins(address)},
            )
            publish = c.Publish(
                queue=queues.outbox(self._channel), messages=[message], actor=self._room.actor
            )
            try:
                await self._room.run(publish)
            except Exception as error:
                log.debug("no word to %s that waits: %s", address.chat, error)
        self._waiting.pop(address.chat, None)
