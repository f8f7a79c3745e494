"""Workers: claim, keep the lease alive, call the handler, and settle by what it did.

A handler that returns completes its message with what it returned; one that raises fails it. It may raise
`Retry`, `Snooze` or `Reject` to say more. A handler whose claim was lost is cancelled.
"""

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from postroom.errors import ClaimLost, Invalid, InvalidField, PostroomError
from postroom.kernel.model import Message
from postroom.runtime.options import check_names

if TYPE_CHECKING:
    from postroom.runtime.room import Room

log = logging.getLogger("postroom.workers")

Handler = Callable[[Message], Any] | Callable[[Message], Awaitable[Any]]
WAIT_S = 20.0
PAUSE_AFTER_ERROR_S = 1.0


class WorkerOptions(TypedDict, total=False):
    concurrency: int
    lease: float
    subscription: str
    name: str


class HandlerOutcome(Exception):
    """What a handler raises to decide how its message goes on."""


class Retry(HandlerOutcome):
    """Try again after `delay` seconds (None: the queue's backoff); counts as an attempt.

    >>> @room.worker("orders")
    ... def pay(message):
    ...     room.stop_workers()
    ...     raise Retry("the bank did not answer", delay=60)
    >>> id = room.publish("orders", 1).id
    >>> room.run_workers()
    >>> room.get(id).state.value, room.get(id).attempts
    ('delayed', 1)
    """

    def __init__(self, reason: str = "retry", *, delay: float | None = None) -> None:
        super().__init__(reason)
        self.delay = delay


class Snooze(HandlerOutcome):
    """Come back in `seconds`; does not count as an attempt.

    >>> @room.worker("orders")
    ... def pay(message):
    ...     room.stop_workers()
    ...     raise Snooze(3600, "the shop is closed")
    >>> id = room.publish("orders", 1).id
    >>> room.run_workers()
    >>> room.get(id).state.value, room.get(id).attempts
    ('delayed', 0)
    """

    def __init__(self, seconds: float, reason: str | None = None) -> None:
        super().__init__(reason)
        self.seconds = seconds
        self.reason = reason


class Reject(HandlerOutcome):
    """This will never work: a dead letter at once.

    >>> @room.worker("orders")
    ... def pay(message):
    ...     room.stop_workers()
    ...     raise Reject("not an order")
    >>> id = room.publish("orders", 1).id
    >>> room.run_workers()
    >>> room.get(id).path
    'default/_dead_letter'
    """


class WorkItem(msgspec.Struct, frozen=True):
    """A handler and how it is to be fed."""

    queue: str
    handler: Handler
    concurrency: int
    lease: float | None
    subscription: str | None
    name: str | None


def job_of(queue: str, handler: Handler, options: WorkerOptions) -> WorkItem:
    check_names(options, WorkerOptions.__annotations__, "a worker")
    concurrency = options.get("concurrency", 1)
    if not isinstance(concurrency, int) or concurrency < 1:
        raise InvalidField("concurrency", f"is {concurrency!r}, must be a whole number from 1")
    return WorkItem(
        queue,
        handler,
        concurrency,
        options.get("lease"),
        options.get("subscription"),
        options.get("name"),
    )


def beat_every(message: Message) -> float:
    """A third of the lease, so that two beats may be lost."""
    if message.claim_expires_at is None or message.claimed_at is None:
        return 10.0
    return max(0.01, (message.claim_expires_at - message.claimed_at) / 3e6)


def describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class AsyncWorkers:
    def __init__(self, room: "Room") -> None:
        self._room = room
        self._jobs: list[WorkItem] = []
        self._stopping: asyncio.Event | None = None
        self._stopped_before = False
        self._lost: set[str] = set()

    def register(self, queue: str, options: WorkerOptions) -> Callable[[Handler], Handler]:
        def decorate(handler: Handler) -> Handler:
            self._jobs.append(job_of(queue, handler, options))
            return handler

        return decorate

    def stop(self) -> None:
        """Also before they first run: then they end as soon as they begin."""
        if self._stopping is not None:
            self._stopping.set()
        else:
            self._stopped_before = True

    async def run(self, grace: float) -> None:
        self._stopping = asyncio.Event()
        if self._stopped_before:
            self._stopping.set()
            self._stopped_before = False
        loops = [asyncio.create_task(self._serve(job)) for job in self._jobs for _ in range(job.concurrency)]
        try:
            await self._stopping.wait()
        finally:
            self._stopping.set()
            if loops:
                _, late = await asyncio.wait(loops, timeout=grace)
                for task in late:
                    task.cancel()
                await asyncio.gather(*loops, return_exceptions=True)

    async def _serve(self, job: WorkItem) -> None:
        """One at a time; a message in hand is finished, or given back when this is cancelled."""
        assert self._stopping is not None
        while not self._stopping.is_set():
            try:
                message = await self._next(job)
                if message is not None:
                    await self._handle(job, message)
            except PostroomError as error:
                log.error("worker of %s pauses: %s", job.queue, error)
                await asyncio.sleep(PAUSE_AFTER_ERROR_S)

    async def _next(self, job: WorkItem) -> Message | None:
        assert self._stopping is not None
        claiming = asyncio.ensure_future(
            self._room.claim(
                job.queue, wait=WAIT_S, lease=job.lease, subscription=job.subscription, worker=job.name
            )
        )
        stopped = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({claiming, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            if not claiming.done():
                claiming.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            claimed = await claiming
            return claimed[0] if claimed else None
        return None

    async def _handle(self, job: WorkItem, message: Message) -> None:
        work = asyncio.ensure_future(self._call(job.handler, message))
        beat = asyncio.ensure_future(self._beat(message, job.lease, work))
        try:
            await self._settle(message, work)
        except ClaimLost as error:
            log.warning("%s", error)
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            with contextlib.suppress(PostroomError):
                await self._room.release(message)
            raise
        finally:
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)

    @staticmethod
    async def _call(handler: Handler, message: Message) -> Any:
        if inspect.iscoroutinefunction(handler):
            return await handler(message)
        result = await asyncio.to_thread(handler, message)
        return await result if inspect.isawaitable(result) else result

    async def _settle(self, message: Message, work: "asyncio.Future[Any]") -> None:
        """As the handler decided; a decision that cannot be carried out is a failure like any other."""
        try:
            await self._follow(message, work)
        except Invalid as error:
            await self._room.fail(message, f"the handler's decision was refused: {error}", kind="decision")

    async def _follow(self, message: Message, work: "asyncio.Future[Any]") -> None:
        room = self._room
        try:
            result = await asyncio.shield(work)
        except Retry as decision:
            await room.fail(message, str(decision), delay=decision.delay)
        except Snooze as decision:
            await room.snooze(message, decision.seconds, reason=decision.reason)
        except Reject as decision:
            await room.fail(message, str(decision) or "rejected", kind="rejected", retry=False)
        except asyncio.CancelledError:
            if not work.cancelled():
                raise
            if message.id in self._lost:
                self._lost.discard(message.id)
            else:
                await room.fail(message, "the handler cancelled itself", kind="CancelledError")
        except Exception as error:
            log.warning("handler of %s failed on message %s", message.path, message.id, exc_info=error)
            await room.fail(message, describe(error), kind=type(error).__name__)
        else:
            try:
                await room.complete(message, result)
            except Invalid as error:
                await room.fail(message, f"the result was refused: {error}", kind="result", retry=False)

    async def _beat(self, message: Message, lease: float | None, work: "asyncio.Future[Any]") -> None:
        while True:
            await asyncio.sleep(beat_every(message))
            try:
                await self._room.extend(message, lease)
            except ClaimLost as error:
                log.warning("%s", error)
                self._lost.add(message.id)
                work.cancel()
                return
            except PostroomError as error:
                log.error("the lease of %s was not extended: %s", message.id, error)
