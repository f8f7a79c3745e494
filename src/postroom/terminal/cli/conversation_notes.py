"""What somebody who waits for an answer is told meanwhile: of their own conversation only, and nothing twice.

The answer itself is never among it: whoever waits shows that at the end.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from postroom.kernel.states import State
from postroom.terminal.cli.output import clean

if TYPE_CHECKING:
    from postroom.services.conversations import ConversationStatus, ConversationStep

SHORT = 200


class ConversationNotes:
    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._told: set[str] = set()
        self._own: set[str] = set()
        self._heard: dict[str, tuple[str, str]] = {}
        """The last words of each turn wait until others follow: they may be the answer."""

    def follow(self, status: "ConversationStatus") -> None:
        """What has become of the conversation since it was looked at last."""
        for step in status.steps:
            self._own.add(step.message_id)
            if step.from_agent:
                self._tell_once(f"asks {step.message_id}", f"@{step.from_agent} asks @{step.agent}")
            if step.attempts or step.state is State.CLAIMED:
                self._tell_once(f"begins {step.message_id}", f"@{step.agent} begins")
            if step.problem and step.state in (State.PENDING, State.DELAYED, State.CLAIMED):
                self._tell_retry(step)

    def hear(self, message_id: str, agent: str, words: str) -> None:
        """Something that an agent said about any message."""
        before = self._heard.pop(message_id, None)
        if before is not None and message_id in self._own:
            self._note(f"@{before[0]}: {before[1]}")
        self._heard[message_id] = (agent, clean(" ".join(words.split()))[:SHORT])

    def _tell_retry(self, step: "ConversationStep") -> None:
        what = "waits" if step.state is State.DELAYED else "is tried again"
        told = f"@{step.agent} {what}: {clean(' '.join((step.problem or '').split()))[:SHORT]}"
        self._tell_once(f"{step.message_id} {step.attempts} {step.problem}", told)

    def _tell_once(self, key: str, words: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self._note(words)
