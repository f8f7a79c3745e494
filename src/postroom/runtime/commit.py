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
from postroom.kernel.commands import Claim, Command, Publish, PublishLike, Unit
from postroom.kernel.engine import AppliedGroup, CommandOutcome, Engine
from postroom.kernel.ports import Store, Transaction
from postroom.runtime.wakeups import Wakeups

log = logging.getLogger("postroom.committer")

MOST_COMMANDS = 2000
MOST_WEIGHT = 20_000
SLOW_COMMIT_S = 0.002

Deliver = Callable[[list[CommandOutcome]], None]


class CommitRequest:
    """Commands of one caller, and how to hand their outcomes back."""

    __slots__ = ("commands", "deliver")

    def __init__(self, commands: Sequence[Command], deliver: Deliver) -> None:
        self.commands = commands
        self.deliver = deliver


class PendingCommit:
    """A transaction that is carried out but not yet committed."""

    __slots__ = ("applied", "commands", "deliver", "started", "tx")

    def __init__(
        self,
        tx: Transaction,
        commands: Sequence[Command],
        applied: AppliedGroup,
        deliver: Deliver,
        started: float,
    ) -> None:
        self.tx = tx
        self.commands = commands
        self.applied = applied
        self.deliver = deliver
        self.started = started


class Committer:
    def __init__(self, store: Store, engine: Engine, wakeups: Wakeups) -> None:
        self._store = store
        self._engine = engine
        self._wakeups = wakeups
        self._inbox: queue.SimpleQueue[CommitRequest | None] = queue.SimpleQueue()
        # Halves have their own thread: they hold the right to write, which the writer may be waiting for.
        self._halves: queue.SimpleQueue[PendingCommit | None] = queue.SimpleQueue()
        self._writing = threading.Lock()
        self._gate = threading.Lock()
        self._closed = False
        self._pace_s = 0.0
        self._writer = threading.Thread(target=self._run, name="postroom-writer", daemon=True)
        self._syncer = threading.Thread(target=self._run_halves, name="postroom-sync", daemon=True)
        self._writer.start()
        self._syncer.start()

    def execute(self, command: Command) -> Any:
        """Do it now and return its value; blocks the calling thread until it is durable."""
        if self._take():
            try:
                return self._commit((command,))[0].result()
            finally:
                self._writing.release()
        done = threading.Event()
        answer: list[CommandOutcome] = []

        def deliver(outcomes: list[CommandOutcome]) -> None:
            answer.extend(outcomes)
            done.set()

        self.submit(CommitRequest((command,), deliver))
        done.wait()
        return answer[0].result()

    def submit(self, request: CommitRequest) -> None:
        """Leave it with the writer, which calls `deliver` from its own thread when it is durable."""
        with self._gate:
            self._refuse_when_closed()
            self._inbox.put(request)

    def try_now(self, commands: Sequence[Command]) -> list[CommandOutcome] | None:
        """Commit on this thread when nobody else is writing or waiting and the disk is quick; else None."""
        if self._pace_s > SLOW_COMMIT_S or not self._take():
            return None
        try:
            return self._commit(commands)
        finally:
            self._writing.release()

    def try_half(self, commands: Sequence[Command], deliver: Deliver) -> bool:
        """Carry the commands out on this thread and leave only the wait for the disk to the writer thread.

        Statements run here because two busy threads would fight over the interpreter at every single row.
        False when somebody else is writing or waiting; then nothing has been done.
        """
        if not self._take():
            return False
        started = time.perf_counter()
        try:
            tx, applied = self._carry_out(commands)
        except Exception:
            answers = self._one_by_one(commands)
            self._writing.release()
            _hand_back(deliver, answers)
            return True
        except BaseException:
            self._writing.release()
            raise
        self._halves.put(PendingCommit(tx, commands, applied, deliver, started))
        return True

    def _take(self) -> bool:
        if not self._writing.acquire(blocking=False):
            return False
        if self._closed or not self._inbox.empty():
            self._writing.release()
            self._refuse_when_closed()
            return False
        return True

    def close(self) -> None:
        """Finish what was handed in, then stop. When this returns, nobody uses the store any more."""
        with self._gate:
            if self._closed:
                return
            self._closed = True
            self._inbox.put(None)
        self._writer.join()
        with self._writing:
            self._halves.put(None)
        self._syncer.join()

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise StoreClosed

    def _run(self) -> None:
        last = False
        while not last:
            item = self._inbox.get()
            if item is None:
                break
            with self._writing:
                last = self._write_group(item)
        self._drain_refusing()

    def _run_halves(self) -> None:
        while (half := self._halves.get()) is not None:
            self._finish(half)

    def _finish(self, half: "PendingCommit") -> None:
        """The second half of `try_half`, which left the writing to this thread."""
        try:
            try:
                self._store.commit(half.tx)
            except Exception:
                self._rollback(half.tx)
                outcomes = self._one_by_one(half.commands)
            else:
                outcomes = half.applied.outcomes
                self._committed(half.started, half.applied)
        finally:
            self._writing.release()
        _hand_back(half.deliver, outcomes)

    def _write_group(self, first: CommitRequest) -> bool:
        requests, size, last = [first], weight(first.commands), False
        while size < MOST_WEIGHT and len(requests) < MOST_COMMANDS:
            try:
                request = self._inbox.get_nowait()
            except queue.Empty:
                break
            if request is None:
                last = True
                break
            requests.append(request)
            size += weight(request.commands)
        commands = [command for request in requests for command in request.commands]
        outcomes = self._commit(commands)
        start = 0
        for request in requests:
            end = start + len(request.commands)
            _hand_back(request.deliver, outcomes[start:end])
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
                _hand_back(request.deliver, [CommandOutcome(error=StoreClosed()) for _ in request.commands])

    def _commit(self, commands: Sequence[Command]) -> list[CommandOutcome]:
        """Together when that works; when it does not, one by one, so that only the guilty one fails."""
        try:
            return self._commit_together(commands)
        except Exception as error:
            if len(commands) == 1:
                return [CommandOutcome(error=self._named(error))]
        return self._one_by_one(commands)

    def _one_by_one(self, commands: Sequence[Command]) -> list[CommandOutcome]:
        outcomes = []
        for command in commands:
            try:
                outcomes += self._commit_together((command,))
            except Exception as error:
                outcomes.append(CommandOutcome(error=self._named(error)))
        return outcomes

    def _named(self, error: Exception) -> BaseException:
        _, error = self._store.classify(error)
        if not isinstance(error, PostroomError):
            log.error("a command failed in an unforeseen way", exc_info=error)
        if isinstance(error, StopIteration):
            # Nobody who awaits could be told of it.
            return RuntimeError("a command stopped in an unforeseen way")
        return error

    def _carry_out(self, commands: Sequence[Command]) -> tuple[Transaction, AppliedGroup]:
        tx = self._store.begin()
        try:
            return tx, self._engine.apply(tx, commands)
        except BaseException:
            self._rollback(tx)
            raise

    def _commit_together(self, commands: Sequence[Command]) -> list[CommandOutcome]:
        started = time.perf_counter()
        tx, applied = self._carry_out(commands)
        try:
            self._store.commit(tx)
        except BaseException:
            self._rollback(tx)
            raise
        self._committed(started, applied)
        return applied.outcomes

    def _rollback(self, tx: Transaction) -> None:
        """What made it necessary is what callers are told; that the undoing failed too is for the log."""
        try:
            self._store.rollback(tx)
        except Exception:
            log.exception("a transaction could not be rolled back")

    def _committed(self, started: float, applied: AppliedGroup) -> None:
        """Wake who waits. It is committed: whatever goes wrong here must not look like a failure of it.

        Readers of the ledger sleep on when it has nothing new, as after a claim that found nothing."""
        self._pace_s += (time.perf_counter() - started - self._pace_s) * 0.2
        try:
            if applied.woken:
                self._wakeups.ring(applied.woken)
            self._wakeups.ring_tails(news=applied.has_news)
        except Exception:
            log.exception("somebody who waits could not be woken")


def _hand_back(deliver: Deliver, outcomes: list[CommandOutcome]) -> None:
    try:
        deliver(outcomes)
    except Exception:
        log.exception("an answer could not be handed back")


def weight(commands: Sequence[Command]) -> int:
    """About how many messages these commands touch."""
    total = 0
    for command in commands:
        try:
            if isinstance(command, Publish):
                total += len(command.messages)
            elif isinstance(command, PublishLike):
                total += len(command.bodies)
            elif isinstance(command, Unit):
                total += len(command.commands)
            elif isinstance(command, Claim):
                total += command.limit or 100
            else:
                total += 1
        except TypeError:
            # Who asked is told what is wrong with it when it is carried out; the others must not wait for it.
            total += 1
    return total
