"""Group commit: requests that wait together share one transaction and one sync to disk.

On a store whose statements run in this process, one thread writes; a caller who finds it idle does its own
commit instead of waking it, since the hand-over would cost more than the work. On a store that is reached
over a network, several threads write side by side, each with an engine of its own, and callers only wait.
Nobody is answered before the commit has returned.
"""

import contextlib
import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from postroom.errors import PostroomError, StoreClosed
from postroom.kernel.changes import KeysTaken
from postroom.kernel.commands import Claim, Command, Complete, CompleteMany, Publish, PublishLike, Unit
from postroom.kernel.costly_checks import NO_ANSWERS, Answers, ChecksNeeded
from postroom.kernel.engine import AppliedGroup, CommandOutcome, Engine
from postroom.kernel.ports import Store, StoreFault, Transaction
from postroom.runtime.check_runner import CheckRunner
from postroom.runtime.deferred_commands import DeferredCommand, DeferredQueue, DeliverOne
from postroom.runtime.wakeups import Wakeups

log = logging.getLogger("postroom.committer")

MOST_COMMANDS = 2000
MOST_WEIGHT = 20_000
# A commit that takes longer is left to another thread; to hand over a shorter one takes as long as it does.
QUICK_COMMIT_S = 0.001
# Before each try after the first: short enough for a deadlock, long enough together for a server's restart.
PAUSES_S = (0.005, 0.02, 0.1, 0.5, 1.0, 2.0, 4.0)

Deliver = Callable[[list[CommandOutcome]], None]


class CommitRequest:
    """Commands of one caller, and how to hand their outcomes back."""

    __slots__ = ("answers", "commands", "deliver")

    def __init__(self, commands: Sequence[Command], deliver: Deliver, answers: Answers = NO_ANSWERS) -> None:
        self.commands = commands
        self.deliver = deliver
        self.answers = answers


class PendingCommit:
    """A transaction that is carried out but not yet committed."""

    __slots__ = ("applied", "commands", "deliver", "tx")

    def __init__(
        self, tx: Transaction, commands: Sequence[Command], applied: AppliedGroup, deliver: Deliver
    ) -> None:
        self.tx = tx
        self.commands = commands
        self.applied = applied
        self.deliver = deliver


class Committer:
    def __init__(self, store: Store, engines: Sequence[Engine], wakeups: Wakeups) -> None:
        """With as many threads as engines. Callers write themselves only if the store does not block."""
        self._store = store
        self._engine = engines[0]
        self._wakeups = wakeups
        self._is_inline = not store.capabilities.blocking
        self._inbox: queue.SimpleQueue[CommitRequest | None] = queue.SimpleQueue()
        # Halves have their own thread: they hold the right to write, which the writer may be waiting for.
        self._halves: queue.SimpleQueue[PendingCommit | None] = queue.SimpleQueue()
        self._writing = threading.Lock()
        self._gate = threading.Lock()
        self._closed = False
        self._commit_s = 0.0
        self._is_closing = threading.Event()
        self.checks = CheckRunner()
        self._deferred = DeferredQueue(self.checks, self._submit_answered)
        self._writers = [
            threading.Thread(target=self._run, args=(engine,), name="postroom-writer", daemon=True)
            for engine in engines
        ]
        self._syncer = threading.Thread(target=self._run_halves, name="postroom-sync", daemon=True)
        for thread in (*self._writers, self._syncer):
            thread.start()

    def execute(self, command: Command) -> Any:
        """Do it now and return its value; blocks the calling thread until it is durable."""
        if self._take():
            try:
                [outcome] = self._commit(self._engine, (command,))
            finally:
                self._writing.release()
        else:
            outcome = _wait(
                lambda deliver: self.submit(CommitRequest((command,), lambda outcomes: deliver(*outcomes)))
            )
        if isinstance(error := outcome.error, ChecksNeeded):
            outcome = _wait(lambda deliver: self.defer(command, error, deliver))
        return outcome.result()

    def submit(self, request: CommitRequest) -> None:
        """Leave it with the writer, which calls `deliver` from its own thread when it is durable."""
        with self._gate:
            self._refuse_when_closed()
            self._inbox.put(request)

    def try_now(self, commands: Sequence[Command]) -> list[CommandOutcome] | None:
        """Commit on this thread when nobody else is writing or waiting and the disk is quick; else None."""
        if self._commit_s > QUICK_COMMIT_S or not self._take():
            return None
        try:
            return self._commit(self._engine, commands)
        finally:
            self._writing.release()

    def try_half(self, commands: Sequence[Command], deliver: Deliver) -> bool:
        """Carry the commands out on this thread and leave only the wait for the disk to the writer thread.

        Statements run here because two busy threads would fight over the interpreter at every single row.
        False when somebody else is writing or waiting; then nothing has been done.
        """
        if not self._take():
            return False
        try:
            tx = self._store.begin()
            try:
                applied = self._engine.apply(tx, commands)
            except BaseException:
                self._rollback(tx)
                raise
        except Exception:
            outcomes = self._one_by_one(self._engine, commands)
            self._writing.release()
            _hand_back(deliver, outcomes)
            return True
        except BaseException:
            self._writing.release()
            raise
        self._halves.put(PendingCommit(tx, commands, applied, deliver))
        return True

    def _take(self) -> bool:
        if not self._is_inline:
            self._refuse_when_closed()
            return False
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
            self._is_closing.set()
            for _ in self._writers:
                self._inbox.put(None)
        self._deferred.close()
        for writer in self._writers:
            writer.join()
        self._drain_refusing()
        self.checks.close()
        with self._writing:
            self._halves.put(None)
        self._syncer.join()

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise StoreClosed

    def _run(self, engine: Engine) -> None:
        last = False
        while not last:
            item = self._inbox.get()
            if item is None:
                return
            with self._writing if self._is_inline else contextlib.nullcontext():
                last = self._write_group(engine, item)

    def _run_halves(self) -> None:
        while (half := self._halves.get()) is not None:
            self._finish(half)

    def _finish(self, half: "PendingCommit") -> None:
        """The second half of `try_half`, which left the writing to this thread."""
        try:
            try:
                self._save(half.tx)
            except Exception:
                self._rollback(half.tx)
                outcomes = self._one_by_one(self._engine, half.commands)
            else:
                outcomes = half.applied.outcomes
                self._wake(half.applied)
        finally:
            self._writing.release()
        _hand_back(half.deliver, outcomes)

    def _write_group(self, engine: Engine, first: CommitRequest) -> bool:
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
        answers = {key: answer for request in requests for key, answer in request.answers.items()}
        outcomes = self._commit(engine, commands, answers)
        start = 0
        for request in requests:
            end = start + len(request.commands)
            _hand_back(request.deliver, outcomes[start:end])
            start = end
        return last

    def defer(self, command: Command, needed: ChecksNeeded, deliver: DeliverOne) -> None:
        """A command whose outcome was `ChecksNeeded`: it is carried out again once they are answered."""
        self._deferred.add(DeferredCommand(command, needed, deliver))

    def _submit_answered(self, command: Command, answers: Answers, deliver: DeliverOne) -> None:
        self.submit(CommitRequest((command,), lambda outcomes: deliver(outcomes[0]), answers))

    def _drain_refusing(self) -> None:
        """Requests that slipped in behind the close are answered, not forgotten."""
        while True:
            try:
                request = self._inbox.get_nowait()
            except queue.Empty:
                return
            if request is not None:
                _hand_back(request.deliver, [CommandOutcome(error=StoreClosed()) for _ in request.commands])

    def _commit(
        self, engine: Engine, commands: Sequence[Command], answers: Answers = NO_ANSWERS
    ) -> list[CommandOutcome]:
        """Together when that works; when it does not, one by one, so that only the guilty one fails."""
        try:
            try:
                return self._try(engine, commands, answers)
            except Exception as error:
                return self._try_again(error, engine, commands, answers)
        except Exception as error:
            if len(commands) == 1 or self._fault(error) is not StoreFault.FINAL:
                # What no retry has helped would not help one by one either.
                return [CommandOutcome(error=self._named(error)) for _ in commands]
        return self._one_by_one(engine, commands, answers)

    def _one_by_one(
        self, engine: Engine, commands: Sequence[Command], answers: Answers = NO_ANSWERS
    ) -> list[CommandOutcome]:
        return [outcome for each in commands for outcome in self._commit(engine, (each,), answers)]

    def _fault(self, error: Exception) -> StoreFault:
        if isinstance(error, ChecksNeeded):
            return StoreFault.FINAL
        return StoreFault.DUPLICATE if isinstance(error, KeysTaken) else self._store.classify(error)[0]

    def _named(self, error: Exception) -> BaseException:
        if isinstance(error, ChecksNeeded):
            return error
        _, error = self._store.classify(error)
        if not isinstance(error, PostroomError):
            log.error("a command failed in an unforeseen way", exc_info=error)
        if isinstance(error, StopIteration):
            # Nobody who awaits could be told of it.
            return RuntimeError("a command stopped in an unforeseen way")
        return error

    def _try(self, engine: Engine, commands: Sequence[Command], answers: Answers) -> list[CommandOutcome]:
        tx = self._store.begin()
        try:
            applied = engine.apply(tx, commands, answers)
            self._save(tx)
        except BaseException:
            self._rollback(tx)
            raise
        self._wake(applied)
        return applied.outcomes

    def _try_again(
        self, error: Exception, engine: Engine, commands: Sequence[Command], answers: Answers
    ) -> list[CommandOutcome]:
        """While the store's error is one that goes away."""
        for pause in PAUSES_S:
            if self._fault(error) is StoreFault.FINAL:
                break
            log.info("a transaction is tried again: %s", error)
            # Two that stood in each other's way must not meet again.
            self._is_closing.wait(pause * random.uniform(0.5, 1.5))
            try:
                return self._try(engine, commands, answers)
            except Exception as next_error:
                error = next_error
        raise error

    def _rollback(self, tx: Transaction) -> None:
        """What made it necessary is what callers are told; that the undoing failed too is for the log."""
        try:
            self._store.rollback(tx)
        except Exception:
            log.exception("a transaction could not be rolled back")

    def _save(self, tx: Transaction) -> None:
        started = time.perf_counter()
        self._store.commit(tx)
        self._commit_s += (time.perf_counter() - started - self._commit_s) * 0.2

    def _wake(self, applied: AppliedGroup) -> None:
        """Who waits. It is committed: whatever goes wrong here must not look like a failure of it.

        Readers of the ledger sleep on when it has nothing new, as after a claim that found nothing."""
        try:
            if applied.woken:
                self._wakeups.wake(applied.woken)
            self._wakeups.wake_followers(news=applied.has_news)
        except Exception:
            log.exception("somebody who waits could not be woken")


def _wait(begin: Callable[[DeliverOne], None]) -> CommandOutcome:
    """Blocks until what is begun here hands its outcome back."""
    done = threading.Event()
    answer: list[CommandOutcome] = []

    def deliver(outcome: CommandOutcome) -> None:
        answer.append(outcome)
        done.set()

    begin(deliver)
    done.wait()
    return answer[0]


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
            if type(command) is PublishLike:
                total += len(command.bodies)
            elif type(command) is Claim:
                total += command.limit or 100
            elif type(command) is Complete:
                total += 1
            else:
                total += _count(command)
        except TypeError:
            # Who asked is told what is wrong with it when it is carried out; the others must not wait for it.
            total += 1
    return total


def _count(command: Command) -> int:
    match command:
        case Publish(messages=parts) | Unit(commands=parts) | CompleteMany(done=parts):
            return len(parts)
        case _:
            return 1
