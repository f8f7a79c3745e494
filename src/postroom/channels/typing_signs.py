"""Shows people that somebody is at work on what they wrote. Nothing depends on it."""

import asyncio
import contextlib
import logging

from postroom.channels.channel import Channel
from postroom.channels.model import Address
from postroom.channels.pauses import Pauses, Stopping

log = logging.getLogger("postroom.channels")

# A turn that takes longer is told in other ways.
LONGEST_S = 600.0


class TypingSigns:
    def __init__(self, channel: Channel, pauses: Pauses) -> None:
        self._channel = channel
        self._pauses = pauses
        self._signs: dict[str, asyncio.Task[None]] = {}

    def start(self, address: Address) -> None:
        every = self._channel.capabilities.typing_s
        if every is not None and address.chat not in self._signs:
            self._signs[address.chat] = asyncio.create_task(self._show(address, every))

    def stop(self, chat: str) -> None:
        if sign := self._signs.pop(chat, None):
            sign.cancel()

    async def close(self) -> None:
        signs, self._signs = list(self._signs.values()), {}
        for sign in signs:
            sign.cancel()
        await asyncio.gather(*signs, return_exceptions=True)

    async def _show(self, address: Address, every: float) -> None:
        with contextlib.suppress(Stopping):
            for _ in range(round(LONGEST_S / every)):
                try:
                    await self._channel.show_typing(address)
                except Exception as error:
                    log.debug("no typing sign in %s: %s", address.chat, error)
                await self._pauses.sleep(every)
        self._signs.pop(address.chat, None)
