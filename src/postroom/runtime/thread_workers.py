"""Workers in threads, for handlers that block. Settling follows the same rules as for asynchronous ones."""

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from postroom.errors import ClaimLost, Invalid, PostroomError, StoreClosed
from postroom.kernel.model import Message
from postroom.runtime.workers import (
    PAUSE_AFTER_ERROR_S,
    Handler,
    Reject,
    Retry,
    Snooze,
    WorkerOptions,
    WorkItem,
    beat_every,
    describe,
    job_of,
)

if TYPE_CHECKING:
    from postroom.runtime.sync_room import SyncRoom

log = logging.getLogger("postroom.workers")
WAIT_S = 20.0


class ThreadWorkers:
    def __init__(self, room: "SyncRoom") -> None:
        self._room = room
        self._jobs: list[WorkItem] = []
        self._stopping = threading.Event()
        self._running = False
        self._ran = False

    def register(self, queue: str, options: WorkerOptions) -> Callable[[Handler], Handler]:
        def decorate(handler: Handler) -> Handler:
            self._jobs.append(job_of(queue, handler, options))
            return handler

        return decorate

    def stop(self) -> None:
        """Also before they first run: then they end as soon as they begin."""
        if self._running or not self._ran:
            self._stopping.set()
            self._room._wake()

    def run(self, grace: float) -> None:
        if self._ran:
            self._stopping.clear()
        self._running = self._ran = True
        threads = [
            threading.Thread(
                target=self._serve, args=(job,), name=f"postroom-worker-{job.queue}", daemon=True
            )
            for job in self._jobs
            for _ in range(job.concurrency)
        ]
        for thread in threads:
            thread.start()
        try:
            while not self._stopping.wait(0.5):
                pass
        finally:
            self._running = False
            self._stopping.set()
            self._room._wake()
            until = time.monotonic() + grace
            for thread in threads:
                thread.join(max(0.0, until - time.monotonic()))

    def _serve(self, job: WorkItem) -> None:
        while not self._stopping.is_set():
            try:
                claim = self._room._builder.claim(
                    (job.queue,), 1, job.lease, job.subscription, job.name, None
                )
                for message in self._room._claim_until(claim, WAIT_S, self._stopping):
                    self._handle(job, message)
            except StoreClosed:
                return
            except PostroomError as error:
                log.error("worker of %s pauses: %s", job.queue, error)
                self._stopping.wait(PAUSE_AFTER_ERROR_S)

    def _handle(self, job: WorkItem, message: Message) -> None:
        done = threading.Event()
        beat = threading.Thread(target=self._beat, args=(message, job.lease, done), daemon=True)
        beat.start()
        try:
            self._settle(job.handler, message)
        except ClaimLost as error:
            log.warning("%s", error)
        finally:
            done.set()
            beat.join()

    def _settle(self, handler: Handler, message: Message) -> None:
        """As the handler decided; a decision that cannot be carried out is a failure like any other."""
        try:
            self._follow(handler, message)
        except Invalid as error:
            self._room.fail(message, f"the handler's decision was refused: {error}", kind="decision")

    def _follow(self, handler: Handler, message: Message) -> None:
        room = self._room
        try:
            result = handler(message)
        except Retry as decision:
            room.fail(message, str(decision), delay=decision.delay)
        except Snooze as decision:
            room.snooze(message, decision.seconds, reason=decision.reason)
        except Reject as decision:
            room.fail(message, str(decision) or "rejected", kind="rejected", retry=False)
        except Exception as error:
            log.warning("handler of %s failed on message %s", message.path, message.id, exc_info=error)
            room.fail(message, describe(error), kind=type(error).__name__)
        else:
            try:
                room.complete(message, result)
            except Invalid as error:
                room.fail(message, f"the result was refused: {error}", kind="result", retry=False)

    def _beat(self, message: Message, lease: float | None, done: threading.Event) -> None:
        while not done.wait(beat_every(message)):
            try:
                self._room.extend(message, lease)
            except ClaimLost:
                return
            except PostroomError as error:
                log.error("the lease of %s was not extended: %s", message.id, error)
