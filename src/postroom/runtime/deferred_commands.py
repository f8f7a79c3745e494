"""Commands that wait for the answers to costly checks, away from the thread that commits."""

import logging
import queue
import threading
from collections.abc import Callable, Sequence

from postroom.errors import PostroomError, StoreClosed
from postroom.kernel.commands import Command
from postroom.kernel.costly_checks import Answers, ChecksNeeded
from postroom.kernel.engine import CommandOutcome
from postroom.runtime.check_runner import CheckRunner

log = logging.getLogger("postroom.checks")

MOST_ANSWERS = 20_000

Deliver = Callable[[list[CommandOutcome]], None]
Submit = Callable[[Sequence[Command], Deliver, Answers], None]


class TooManyChecks(PostroomError):
    """It needs more than {limit} costly checks of rules and schemas. Publish less at once."""

    code = "TOO_MANY_CHECKS"
    http_status = 409


class DeferredCommands:
    """Commands of one caller, of which some could not be carried out without answers."""

    __slots__ = ("answers", "commands", "deliver", "outcomes")

    def __init__(
        self,
        commands: Sequence[Command],
        outcomes: list[CommandOutcome],
        deliver: Deliver,
        answers: Answers,
    ) -> None:
        self.commands = commands
        self.outcomes = outcomes
        self.deliver = deliver
        self.answers = answers


class DeferredQueue:
    def __init__(self, runner: CheckRunner, submit: Submit) -> None:
        self._runner = runner
        self._submit = submit
        self._inbox: queue.SimpleQueue[DeferredCommands | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def add(self, deferred: DeferredCommands) -> None:
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

    def _carry_on(self, deferred: DeferredCommands) -> None:
        outcomes, answers = deferred.outcomes, dict(deferred.answers)
        waiting = [n for n, outcome in enumerate(outcomes) if isinstance(outcome.error, ChecksNeeded)]
        for number in waiting:
            needed = outcomes[number].error
            assert isinstance(needed, ChecksNeeded)
            found = self._runner.answer(needed.checks)
            if found.keys() <= answers.keys() or len(answers) > MOST_ANSWERS:
                raise TooManyChecks(limit=MOST_ANSWERS)
            answers |= found

        def fill(done: list[CommandOutcome]) -> None:
            for number, outcome in zip(waiting, done, strict=True):
                outcomes[number] = outcome
            deferred.deliver(outcomes)

        self._submit([deferred.commands[number] for number in waiting], fill, answers)


def _refuse(deferred: DeferredCommands, error: Exception) -> None:
    for outcome in deferred.outcomes:
        if isinstance(outcome.error, ChecksNeeded):
            outcome.error = error
    try:
        deferred.deliver(deferred.outcomes)
    except Exception:
        log.exception("an answer could not be handed back")
