"""Group commit: requests that wait together share one transaction and one sync to disk.

One thread writes. A caller who finds the writer idle does its own commit instead of waking the thread, since
the hand-over would cost more than the work. Nobody is answered before the commit has returned.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from postroom.errors import PostroomError, StoreClosed
from postroom.kernel.commands import Command, Publish, Unit
from postroom.kernel.engine import Engine, Outcome
from postroom.kernel.hub import Hub
from postroom.kernel.store import Store

log = logging.getLogger("postroom.committer")

MOST_COMMANDS = 2000
MOST_WEIGHT = 20_000
SLOW_COMMIT_S = 0.002

Deliver = Callable[[list[Outcome]], None]


class Request:
    """Commands of one caller, and how to hand their outcomes back."""

    __slots__ = ("commands", "deliver")

    def __init__(self, commands: Sequence[Command], deliver: Deliver) -> None:
        self.commands = commands
        self.deliver = deliver


class Committer:
    def __init__(self, store: Store, engine: Engine, hub: Hub) -> None:
        self._store = store
        self._engine = engine
        self._hub = hub
        self._inbox: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._writing = threading.Lock()
        self._closed = False
        self._pace_s = 0.0
        self._thread = threading.Thread(target=self._run, name="postroom-writer", daemon=True)
        self._thread.start()

    def execute(self, command: Command) -> Any:
        """Do it now and return its value; blocks the calling thread until it is durable."""
        if self._writing.acquire(blocking=False):
            try:
                if self._inbox.empty():
                    self._refuse_when_closed()
                    return self._commit((command,))[0].result()
            finally:
                self._writing.release()
        done = threading.Event()
        answer: list[Outcome] = []

        def deliver(outcomes: list[Outcome]) -> None:
            answer.extend(outcomes)
            done.set()

        self.submit(Request((command,), deliver))
        done.wait()
        return answer[0].result()

    def submit(self, request: Request) -> None:
        """Leave it with the writer, which calls `deliver` from its own thread when it is durable."""
        self._refuse_when_closed()
        self._inbox.put(request)

    def try_now(self, commands: Sequence[Command]) -> list[Outcome] | None:
        """Commit on this thread when nobody else is writing or waiting and the disk is quick; else None."""
        if self._pace_s > SLOW_COMMIT_S:
            # Measured anew with every commit of the writer thread, so a disk that recovers is found out.
            return None
        if not self._writing.acquire(blocking=False):
            return None
        try:
            if not self._inbox.empty():
                return None
            self._refuse_when_closed()
            return self._commit(commands)
        finally:
            self._writing.release()

    def close(self) -> None:
        """Finish what was handed in, then stop."""
        if self._closed:
            return
        self._closed = True
        self._inbox.put(None)
        self._thread.join()

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise StoreClosed

    def _run(self) -> None:
        while True:
            request = self._inbox.get()
            if request is None:
                self._drain_refusing()
                return
            with self._writing:
                last = self._write_group(request)
            if last:
                self._drain_refusing()
                return

    def _write_group(self, first: Request) -> bool:
        requests, weight, last = [first], _weight(first), False
        while weight < MOST_WEIGHT and len(requests) < MOST_COMMANDS:
            try:
                request = self._inbox.get_nowait()
            except queue.Empty:
                break
            if request is None:
                last = True
                break
            requests.append(request)
            weight += _weight(request)
        commands = [command for request in requests for command in request.commands]
        outcomes = self._commit(commands)
        start = 0
        for request in requests:
            end = start + len(request.commands)
            try:
                request.deliver(outcomes[start:end])
            except Exception:
                log.exception("an answer could not be handed back")
            start = end
        return last

    def _drain_refusing(self) -> None:
        """Requests that slipped in behind the close are answered, not forgotten."""
        while True:
            try:
                request = self._inbox.get_nowait()
            except queue.Empty:
                return
            if request is not None:
                request.deliver([Outcome(error=StoreClosed()) for _ in request.commands])

    def _commit(self, commands: Sequence[Command]) -> list[Outcome]:
        """Together when that works; when it does not, one by one, so that only the guilty one fails."""
        try:
            return self._commit_together(commands)
        except Exception as error:
            if len(commands) == 1:
                return [Outcome(error=_named(error))]
        outcomes = []
        for command in commands:
            try:
                outcomes += self._commit_together((command,))
            except Exception as error:
                outcomes.append(Outcome(error=_named(error)))
        return outcomes

    def _commit_together(self, commands: Sequence[Command]) -> list[Outcome]:
        started = time.perf_counter()
        tx = self._store.begin()
        try:
            outcomes, woken = self._engine.apply(tx, commands)
            self._store.commit(tx)
        except BaseException:
            self._store.rollback(tx)
            raise
        self._pace_s += (time.perf_counter() - started - self._pace_s) * 0.2
        if woken:
            self._hub.ring(woken)
        self._hub.ring_tails()
        return outcomes


def _named(error: Exception) -> BaseException:
    if not isinstance(error, PostroomError):
        log.error("a command failed in an unforeseen way", exc_info=error)
    return error


def _weight(request: Request) -> int:
    weight = 0
    for command in request.commands:
        if isinstance(command, Publish):
            weight += len(command.messages)
        elif isinstance(command, Unit):
            weight += len(command.commands)
        else:
            weight += 1
    return weight
