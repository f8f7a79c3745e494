"""Relay and delivery workers together, started with the server and stopped with it."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator

from postroom.clock import Clock
from postroom.errors import StoreClosed
from postroom.kernel import webhooks
from postroom.runtime import Room
from postroom.webhooks.addresses import Inside, nowhere
from postroom.webhooks.delivery import DeliveryWorkers
from postroom.webhooks.relay import Relay

log = logging.getLogger("postroom.webhooks")

PAUSE_S = 1.0


async def make_queue(room: Room) -> None:
    """The scope and queue of deliveries, once."""
    for command in webhooks.make_queue():
        await room.run(command)


class WebhookService:
    def __init__(
        self,
        room: Room,
        *,
        clock: Clock | None = None,
        inside: Inside = nowhere,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._room = room
        self.relay = Relay(room)
        self.workers = DeliveryWorkers(room, clock or room.clock, inside=inside, tls=tls)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        await make_queue(self._room)
        tasks = [asyncio.create_task(self._keep(part)) for part in (self.relay, self.workers)]
        try:
            yield
        finally:
            self.relay.stop()
            self.workers.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, part: Relay | DeliveryWorkers) -> None:
        """A fault in one round must not end the service."""
        while True:
            try:
                await part.run()
                return
            except StoreClosed:
                return
            except Exception:
                log.exception("webhooks go on after a fault")
                await asyncio.sleep(PAUSE_S)
