"""Workers over HTTP: a program on any machine claims messages, works on several at once, keeps its claims
alive and reports what became of them. It needs a client and no store.

pool = WorkerPool(client, "orders/new", work, at_once=8)
await pool.run()
"""

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2

from postroom.client.asynchronous import AsyncClient
from postroom.client.completion_batch import CompletionBatch
from postroom.client.errors import ServiceError
from postroom.client.model import Message

log = logging.getLogger("postroom.worker")

Work = Callable[[Message], Awaitable[Any] | Any]
"""A function of one message. What it returns is the result; what it raises is why it failed."""

LEASE_S = 60.0
WAIT_S = 5.0
AGAIN_S = 1.0
LONGEST_PAUSE_S = 30.0
# So often a claim is extended while its lease lasts.
BEATS = 3
# Somebody else has it, it has ended, or it is gone.
LOST = frozenset({404, 409})


class Unworkable(Exception):
    """Raised by work that would fail again however often it is tried: the message becomes a dead letter."""


class WorkerPool:
    """`work` may be a coroutine function, or a plain one, which then has a thread for each message."""

    def __init__(
        self,
        client: AsyncClient,
        queue: str,
        work: Work,
        *,
        at_once: int = 1,
        lease_s: float = LEASE_S,
        wait_s: float = WAIT_S,
        name: str | None = None,
    ) -> None:
        self._client = client
        self._completions = CompletionBatch(client)
        self._queue = queue
        self._work = work
        self._at_once = at_once
        self._lease_s = lease_s
        self._wait_s = wait_s
        self._wish = {"visibility_timeout_s": lease_s, **({"worker": name} if name else {})}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="postroom-worker")
        self.completed = 0
        self.failed = 0

    def stop(self) -> None:
        """Claim nothing more; `run` ends when what is in hand is done."""
        self._stopping.set()

    async def run(self) -> None:
        """Until it is stopped. A service that is away is waited for; one that refuses ends it."""
        pause = AGAIN_S
        try:
            while not self._stopping.is_set():
                free = self._at_once - len(self._tasks)
                if not free:
                    await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
                    continue
                try:
                    claimed = await self._client.claim(
                        self._queue, batch_size=free, wait_s=self._wait_s, **self._wish
                    )
                except (httpx2.TransportError, ServiceError) as error:
                    if isinstance(error, ServiceError) and error.status < 500 and error.status != 429:
                        raise
                    log.warning("nothing could be claimed: %s", error)
                    await self._pause(pause)
                    pause = min(2 * pause, LONGEST_PAUSE_S)
                    continue
                pause = AGAIN_S
                for message in claimed:
                    task = asyncio.create_task(self._handle(message))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
        finally:
            if self._tasks:
                await asyncio.wait(self._tasks)
            self._threads.shutdown()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def _handle(self, message: Message) -> None:
        work = asyncio.ensure_future(self._call(message))
        beat = asyncio.create_task(self._keep_alive(message, work))
        try:
            await asyncio.wait([work])
        finally:
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)
        if work.cancelled():
            log.warning("the claim of %s was lost while it was worked on; somebody else has it", message.id)
            return
        try:
            await self._report(message, work)
        except Exception as error:
            # Also of a result that cannot be sent. The lease ends by itself, and the message is tried again.
            log.warning("what became of %s could not be told: %s", message.id, error)

    async def _call(self, message: Message) -> Any:
        if inspect.iscoroutinefunction(self._work):
            return await self._work(message)
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._work, message)

    async def _keep_alive(self, message: Message, work: "asyncio.Future[Any]") -> None:
        while True:
            await asyncio.sleep(self._lease_s / BEATS)
            try:
                await self._client.extend(message, self._lease_s)
            except ServiceError as error:
                if error.status in LOST:
                    work.cancel()
                    return
                log.warning("the claim of %s could not be extended: %s", message.id, error)
            except httpx2.TransportError as error:
                log.warning("the claim of %s could not be extended: %s", message.id, error)

    async def _report(self, message: Message, work: "asyncio.Future[Any]") -> None:
        error = work.exception()
        if error is None:
            await self._completions.complete(message, work.result())
            self.completed += 1
            return
        if not isinstance(error, Unworkable):
            log.error("%s failed", message.id, exc_info=error)
        reason = str(error) or type(error).__name__
        await self._client.fail(message, reason, retry=not isinstance(error, Unworkable))
        self.failed += 1


def run_workers(
    url: str, key: str, queue: str, work: Work, *, tenant: str | None = None, **options: Any
) -> None:
    """A pool in a program that has no event loop, until it is interrupted."""

    async def run() -> None:
        async with AsyncClient(url, key, tenant=tenant) as client:
            await WorkerPool(client, queue, work, **options).run()

    asyncio.run(run())
