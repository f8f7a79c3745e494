"""Relay and couriers together, started with the house and stopped with it."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator

from postroom.clock import Clock
from postroom.errors import StoreClosed
from postroom.kernel import commands as c
from postroom.kernel import webhooks
from postroom.runtime import Room
from postroom.webhooks.addresses import Inside, nowhere
from postroom.webhooks.delivery import DeliveryWorkers
from postroom.webhooks.relay import Relay

log = logging.getLogger("postroom.webhooks")

# The queue allows more than any webhook; each webhook has its own limit.
SETTINGS = {"max_retries": 100, "backoff_base_s": 1.0, "backoff_cap_s": 300.0, "visibility_timeout_s": 60.0}
PAUSE_S = 1.0


async def make_place(room: Room) -> None:
    """The scope and queue of deliveries, once."""
    who = {"actor": "webhooks", "tenant": webhooks.TENANT, "exist_ok": True}
    await room.run(c.CreateScope(slug=webhooks.SCOPE, **who))
    await room.run(c.CreateQueue(queue=webhooks.QUEUE, settings=SETTINGS, **who))


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
        self.couriers = DeliveryWorkers(room, clock or room._core.clock, inside=inside, tls=tls)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        await make_place(self._room)
        tasks = [asyncio.create_task(self._keep(part)) for part in (self.relay, self.couriers)]
        try:
            yield
        finally:
            self.relay.stop()
            self.couriers.stop()
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
