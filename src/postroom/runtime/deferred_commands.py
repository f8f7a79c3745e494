"""Commands that wait for the answers to costly checks, away from the thread that commits."""

import logging
import queue
import threading
from collections.abc import Callable

from postroom.errors import PostroomError, StoreClosed
from postroom.kernel.commands import Command
from postroom.kernel.costly_checks import NO_ANSWERS, Answers, ChecksNeeded
from postroom.kernel.engine import CommandOutcome
from postroom.runtime.check_runner import CheckRunner

log = logging.getLogger("postroom.checks")

MOST_ANSWERS = 20_000

DeliverOne = Callable[[CommandOutcome], None]
Submit = Callable[[Command, Answers, DeliverOne], None]


class TooManyChecks(PostroomError):
    """It needs more than {limit} costly checks of rules and schemas. Publish less at once."""

    code = "TOO_MANY_CHECKS"
    http_status = 409


class DeferredCommand:
    """A command that could not be carried out without answers, and those it has."""

    __slots__ = ("answers", "command", "deliver", "needed")

    def __init__(
        self, command: Command, needed: ChecksNeeded, deliver: DeliverOne, answers: Answers = NO_ANSWERS
    ) -> None:
        self.command = command
        self.needed = needed
        self.deliver = deliver
        self.answers = answers


class DeferredQueue:
    def __init__(self, runner: CheckRunner, submit: Submit) -> None:
        self._runner = runner
        self._submit = submit
        self._inbox: queue.SimpleQueue[DeferredCommand | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def add(self, deferred: DeferredCommand) -> None:
        with self._lock:
            if not self._is_closed:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="postroom-checks", daemon=True)
                    self._thread.start()
                self._inbox.put(deferred)
                return
        _refuse(deferred, StoreClosed())

    def close(self) -> None:
        """What waits here is told that the room is closed, since it can no longer be submitted."""
        with self._lock:
            self._is_closed = True
            self._inbox.put(None)
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while (deferred := self._inbox.get()) is not None:
            try:
                self._carry_on(deferred)
            except Exception as error:
                if not isinstance(error, PostroomError):
                    log.exception("costly checks could not be answered")
                _refuse(deferred, error)

    def _carry_on(self, deferred: DeferredCommand) -> None:
        if self._is_closed:
            raise StoreClosed
        found = self._runner.answer(deferred.needed.checks)
        answers = {**deferred.answers, **found}
        if len(answers) == len(deferred.answers) or len(answers) > MOST_ANSWERS:
            raise TooManyChecks(limit=MOST_ANSWERS)

        def deliver(outcome: CommandOutcome) -> None:
            if isinstance(outcome.error, ChecksNeeded):
                # What the answers led to needs answers too.
                self.add(DeferredCommand(deferred.command, outcome.error, deferred.deliver, answers))
            else:
                deferred.deliver(outcome)

        self._submit(deferred.command, answers, deliver)


def _refuse(deferred: DeferredCommand, error: Exception) -> None:
    try:
        deferred.deliver(CommandOutcome(error=error))
    except Exception:
        log.exception("an answer could not be handed back")
