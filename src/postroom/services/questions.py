"""Questions that agents and programs ask a person, and the answers they come back for."""

from collections.abc import Sequence
from typing import Any

import msgspec

from postroom.errors import InvalidField
from postroom.kernel import commands as c
from postroom.kernel.checks import DEFAULT_SCOPE
from postroom.kernel.model import NewMessage
from postroom.kernel.states import OPEN
from postroom.services.callers import Caller, CallerKind
from postroom.services.conversations import message_in_turn
from postroom.services.office_context import OfficeService, require_owner_or_agent

QUEUE = f"{DEFAULT_SCOPE}/reviews"
TYPE = "office.question"


class QuestionAnswer(msgspec.Struct, frozen=True):
    open: bool
    answer: Any


class QuestionService(OfficeService):
    async def ask(self, caller: Caller, question: str, options: Sequence[str] = ()) -> str:
        """The id to come back with; the answer is the message's result."""
        require_owner_or_agent(caller)
        room = await self._context.room()
        cause = await message_in_turn(room, caller) if caller.kind is CallerKind.AGENT else None
        spec = {
            "title": f"@{caller.name} asks",
            "sections": [
                {"type": "context", "content": question},
                {"type": "decision", "options": list(options) or ["yes", "no"]},
            ],
        }
        message = NewMessage(
            body={"question": question},
            message_type=TYPE,
            hitl_spec=spec,
            correlation_id=cause.correlation_id if cause else None,
            causation_id=cause.id if cause else None,
            source_type="agent" if cause else "user",
            source_id=caller.name,
        )
        commands = (
            c.CreateQueue(queue=QUEUE, settings={}, exist_ok=True, actor=caller.name),
            c.Publish(queue=QUEUE, messages=[message], actor=caller.name),
        )
        _, [receipt] = await room.run(c.Unit(commands=commands, actor=caller.name))
        return receipt.id

    async def read(self, caller: Caller, question_id: str) -> QuestionAnswer:
        require_owner_or_agent(caller)
        message = await (await self._context.room()).get(question_id)
        theirs = caller.kind is CallerKind.AGENT and message.source_id != caller.name
        if message.message_type != TYPE or theirs:
            raise InvalidField("id", "is no question of yours")
        return QuestionAnswer(message.state in OPEN, message.result)
