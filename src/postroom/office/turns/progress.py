"""What is told of a turn while it lasts: records for whoever watches, and, if wanted, words for the person.

Words come in many small pieces, and every record is a commit: so they are told together, now and then, and
the last ones with what follows from the turn.
"""

import contextlib
import time
import uuid
from typing import Any

from postroom.errors import IdempotencyConflict
from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.office.ports import RoomPort
from postroom.office.texts import fitted
from postroom.office.turns import outcomes
from postroom.providers.protocol import TextChunk, ToolUse, TurnEvent

TOGETHER_S = 0.3


class TurnProgress:
    def __init__(self, room: RoomPort, agent: str, about: Message, *, verbose: bool) -> None:
        self.turn_id = uuid.uuid4().hex
        self._room = room
        self._agent = agent
        self._about = about
        self._verbose = verbose
        self._is_started = False
        self._part = 0
        self._said: list[str] = []
        self._untold: list[str] = []
        self._told_at = time.monotonic()

    def start(self, provider: str, model: str) -> list[c.Command]:
        """That the turn begins, to be committed; nothing when it was told before."""
        if self._is_started:
            return []
        self._is_started, self._told_at = True, time.monotonic()
        return [self._record("turn.started", {"agent": self._agent, "provider": provider, "model": model})]

    async def tell_started(self, provider: str, model: str) -> None:
        await self._run(self.start(provider, model))

    async def tell(self, event: TurnEvent) -> None:
        if isinstance(event, TextChunk):
            if event.part != self._part:
                await self._part_ended()
                self._part = event.part
            self._said.append(event.text)
            self._untold.append(event.text)
            if time.monotonic() - self._told_at >= TOGETHER_S:
                await self._flush()
        elif isinstance(event, ToolUse):
            tool = {"agent": self._agent, "tool": fitted(event.name, 1000), "state": event.state}
            await self._run([*self.take_untold(), self._record("turn.tool", tool)])

    def take_untold(self) -> list[c.Command]:
        """The words since the last record, as a record to be committed with whatever comes next."""
        text, self._untold = fitted("".join(self._untold)), []
        return [self._record("turn.progress", {"agent": self._agent, "text": text})] if text else []

    async def _flush(self) -> None:
        self._told_at = time.monotonic()
        await self._run(self.take_untold())

    async def _part_ended(self) -> None:
        """The last part is the answer; those before it are what was said on the way."""
        await self._flush()
        text, self._said = "".join(self._said).strip(), []
        if not self._verbose or not text:
            return
        key = f"progress:{self._about.id}:{self._part}"
        said = outcomes.tell(self._about, self._agent, fitted(text), kind="office.progress", key=key)
        # A retry has other words for the same step; the person has read the first ones.
        with contextlib.suppress(IdempotencyConflict):
            await self._run(said)

    async def _run(self, commands: list[c.Command]) -> None:
        if commands:
            await self._room.run(c.Unit(commands=tuple(commands), actor=self._agent))

    def _record(self, kind: str, data: dict[str, Any]) -> c.Command:
        return c.AddRecord(
            kind=kind,
            key=self.turn_id,
            data=data,
            message_id=self._about.id,
            correlation_id=self._about.correlation_id,
            actor=self._agent,
        )
