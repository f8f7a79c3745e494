"""What is told of a turn while it lasts: records for whoever watches, and, if wanted, words for the person.

Words come in many small pieces, and every record is a commit: so they are told together, now and then.
"""

import contextlib
import time
from typing import Any

from postroom.errors import IdempotencyConflict
from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.office.ports import RoomPort
from postroom.office.texts import fitted
from postroom.office.turns import outcomes
from postroom.providers.protocol import Failed, Finished, TextChunk, ToolUse, TurnEvent

TOGETHER_S = 0.3


class TurnProgress:
    def __init__(self, room: RoomPort, agent: str, about: Message, turn_id: str, *, verbose: bool) -> None:
        self._room = room
        self._agent = agent
        self._about = about
        self._turn_id = turn_id
        self._verbose = verbose
        self._part = 0
        self._said: list[str] = []
        self._untold: list[str] = []
        self._told_at = float("-inf")

    async def started(self, provider: str = "", model: str = "") -> None:
        await self._note("turn.started", {"agent": self._agent, "provider": provider, "model": model})

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
            await self._flush()
            await self._note(
                "turn.tool", {"agent": self._agent, "tool": fitted(event.name, 1000), "state": event.state}
            )
        elif isinstance(event, Finished | Failed):
            await self._flush()

    async def _flush(self) -> None:
        text, self._untold = fitted("".join(self._untold)), []
        if text:
            self._told_at = time.monotonic()
            await self._note("turn.progress", {"agent": self._agent, "text": text})

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
            await self._room.run(c.Unit(commands=tuple(said), actor=self._agent))

    async def _note(self, kind: str, data: dict[str, Any]) -> None:
        record = c.AddRecord(
            kind=kind,
            key=self._turn_id,
            data=data,
            message_id=self._about.id,
            correlation_id=self._about.correlation_id,
            actor=self._agent,
        )
        await self._room.run(record)
