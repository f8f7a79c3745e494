"""Pushes a platform's events to a URL, as platforms do: signed, again and again until accepted, not always in
order.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat

import aiohttp

from postroom.clock import SECOND
from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.faults import ConnectionDropped, DeliveredTwice, FaultPlan, SignedWrongly
from postroom.testing.platforms.transcript import GIVE_UP_SECONDS

ACCEPTED = range(200, 300)


@dataclass(frozen=True)
class PushedEvent:
    id: str
    body: bytes = field(repr=False)
    content_type: str = "application/json"
    # Whether the platform tries again when it was not accepted.
    repeated: bool = True


@dataclass(frozen=True)
class WebhookAttempt:
    """One request to the webhook: the status it was answered with, none when no answer came."""

    event_id: str
    number: int
    status: int | None
    at: int
    answer: bytes = b""

    @property
    def accepted(self) -> bool:
        return self.status in ACCEPTED


# Headers of a body, for attempt `number` (1 is the first); `wrong` asks for a signature that does not fit.
Signer = Callable[[bytes, int, bool], dict[str, str]]


class WebhookSender:
    """`delays`: seconds of the held clock between attempts; `endless` repeats the last one until `lifetime`
    is over.
    """

    def __init__(
        self,
        clock: HeldClock,
        faults: FaultPlan,
        sign: Signer,
        *,
        delays: Sequence[float],
        endless: bool = False,
        lifetime: float | None = None,
        answer_within: float,
        in_order: bool,
        inspect: Callable[[WebhookAttempt], None] = lambda attempt: None,
    ) -> None:
        self._inspect = inspect
        self._clock = clock
        self._faults = faults
        self._sign = sign
        self._delays = delays
        self._endless = endless
        self._lifetime = lifetime
        self._answer_within = answer_within
        self._order = asyncio.Lock() if in_order else None
        self._session: aiohttp.ClientSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: list[PushedEvent] | None = None
        self.url: str | None = None
        self.attempts: list[WebhookAttempt] = []
        self._progress = asyncio.Event()
        self.given_up: list[str] = []

    def push(self, event: PushedEvent) -> None:
        if self._held is not None:
            self._held.append(event)
        elif self.url is not None:
            task = asyncio.create_task(self._deliver(event))
            self._tasks.add(task)
            task.add_done_callback(self._end_task)

    def hold(self) -> None:
        """Events wait from now on, until `release`."""
        self._held = []

    async def release(
        self, order: Callable[[list[PushedEvent]], Sequence[PushedEvent]] | None = None
    ) -> None:
        """The events that waited go out one after the other, in the order chosen: reversed, shuffled."""
        held, self._held = self._held or [], None
        for event in order(held) if order else held:
            await self._deliver(event)

    async def wait_for_attempts(self, count: int) -> None:
        """Until this many attempts were made, or no event waits for another."""
        async with asyncio.timeout(GIVE_UP_SECONDS):
            while len(self.attempts) < count and self._tasks:
                await self._progress.wait()

    async def drain(self) -> None:
        """Waits until every event was accepted or given up."""
        async with asyncio.timeout(GIVE_UP_SECONDS):
            while self._tasks:
                await asyncio.gather(*self._tasks)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._note_progress()

    def _note_progress(self) -> None:
        self._progress.set()
        self._progress = asyncio.Event()

    async def _deliver(self, event: PushedEvent) -> None:
        if self._order is None:
            return await self._repeat(event)
        async with self._order:
            return await self._repeat(event)

    async def _repeat(self, event: PushedEvent) -> None:
        started = self._clock.now()
        delays = chain(self._delays, repeat(self._delays[-1])) if self._endless else iter(self._delays)
        number = 1
        while True:
            attempt = await self._attempt(event, number)
            if attempt.accepted and not self._faults.take("webhook", DeliveredTwice):
                return
            delay = next(delays, None) if event.repeated else None
            number += 1
            if delay is None:
                break
            if not attempt.accepted:
                await self._clock.wait_until(attempt.at + round(delay * SECOND))
            if self._lifetime is not None and self._clock.now() - started > self._lifetime * SECOND:
                break
        self.given_up.append(event.id)

    async def _attempt(self, event: PushedEvent, number: int) -> WebhookAttempt:
        at = self._clock.now()
        drop = self._faults.take("webhook", ConnectionDropped)
        status, answer = None, b""
        if not (isinstance(drop, ConnectionDropped) and drop.when == "before"):
            wrong = self._faults.take("webhook", SignedWrongly) is not None
            headers = {"Content-Type": event.content_type} | self._sign(event.body, number, wrong)
            status, answer = await self._post(event.body, headers)
        if drop is not None:
            status = None
        attempt = WebhookAttempt(event.id, number, status, at, answer)
        self.attempts.append(attempt)
        self._inspect(attempt)
        self._note_progress()
        return attempt

    async def _post(self, body: bytes, headers: dict[str, str]) -> tuple[int | None, bytes]:
        assert self.url is not None
        request = asyncio.create_task(self._request(self.url, body, headers))
        deadline = asyncio.create_task(self._clock.sleep(self._answer_within))
        try:
            await asyncio.wait({request, deadline}, return_when=asyncio.FIRST_COMPLETED)
            return await request if request.done() else (None, b"")
        finally:
            for task in (request, deadline):
                task.cancel()
            await asyncio.gather(request, deadline, return_exceptions=True)

    async def _request(self, url: str, body: bytes, headers: dict[str, str]) -> tuple[int | None, bytes]:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        try:
            async with self._session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                return response.status, await response.read()
        except aiohttp.ClientError:
            return None, b""
