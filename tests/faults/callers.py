"""Callers who write down what they ask before they ask it, and what they were told after they were told."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from postroom.errors import StoreError
from postroom.kernel import commands as c
from postroom.kernel.engine import CommandOutcome
from postroom.runtime.commit import CommitRequest
from postroom.runtime.core import RoomCore
from tests.faults.history import History

PATIENCE_S = 20


class Hang(Exception):
    """Nobody answered."""


class Caller:
    """`faults` counts the faults so far: a store that fails without a new one has not recovered."""

    def __init__(self, core: RoomCore, history: History, faults: list[Any], names: str = "op") -> None:
        self._core = core
        self._history = history
        self.faults = faults
        self._names = names
        self._count = 0
        self.problems: list[str] = []
        self.after: Callable[[], None] | None = None

    def next_name(self) -> str:
        self._count += 1
        return f"{self._names}{self._count}"

    def ask(self, command: c.Command) -> Any:
        """The value, or None when it was refused or failed."""
        name, before = self.next_name(), len(self.faults)
        self._history.begin(name, command)
        try:
            outcome = CommandOutcome(self._core.committer.execute(command))
        except Exception as error:
            outcome = CommandOutcome(error=error)
        value = self._note(name, command, outcome, before)
        self._done()
        return value

    def ask_together(self, commands: Sequence[c.Command]) -> list[Any]:
        """What several callers ask at once: one transaction, when that works.

        Every other time as an event loop would have it: carried out here, and committed by the other thread.
        """
        names, before = [self.next_name() for _ in commands], len(self.faults)
        for name, command in zip(names, commands, strict=True):
            self._history.begin(name, command)
        done = threading.Event()
        outcomes: list[CommandOutcome] = []

        def deliver(answers: list[CommandOutcome]) -> None:
            outcomes.extend(answers)
            done.set()

        committer = self._core.committer
        if self._count % 2 or not committer.try_half(commands, deliver):
            committer.submit(CommitRequest(commands, deliver))
        if not done.wait(PATIENCE_S):
            raise Hang(f"{names} were not answered within {PATIENCE_S} s")
        values = [self._note(*each, before) for each in zip(names, commands, outcomes, strict=True)]
        self._done()
        return values

    def _done(self) -> None:
        if self.after is not None:
            self.after()

    def _note(self, name: str, command: c.Command, outcome: CommandOutcome, before: int) -> Any:
        if outcome.error is None:
            self._history.ok(name, command, outcome.value)
            return outcome.value
        self._history.not_ok(name, outcome.error)
        if isinstance(outcome.error, StoreError) and len(self.faults) == before:
            self.problems.append(f"recovery: {name} failed without a fault: {outcome.error}")
        return None
