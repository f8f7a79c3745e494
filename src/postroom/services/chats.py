"""What a person and an agent said, whole, with what each answer took; and turns that go on now."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from postroom.kernel.model import Message
from postroom.kernel.reader import Reader
from postroom.office import queues
from postroom.office.events.derive import said
from postroom.office.lanes.batches import team_of, text_of
from postroom.office.message_rows import FAILURE, HISTORY, MAIL
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeService, require_viewer
from postroom.services.rooms import require_team
from postroom.services.workload import worker_of

if TYPE_CHECKING:
    from postroom.runtime import Room

PAGE = 200
# A turn is told of right after its message was claimed; further away it is not looked for.
LOOKED = 2000
MOST_WORKING = 50
USED = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")


class TurnFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn took: `tools` by name as often as they were used, times in microseconds."""

    cost_usd: float | None = None
    tokens: int = 0
    took: int = 0
    tools: tuple[str, ...] = ()


class ChatLine(msgspec.Struct, frozen=True, kw_only=True):
    """`is_agent` tells an answer from what a person wrote. Of that, `state` says how far it has come."""

    number: int
    author: str
    text: str
    is_agent: bool
    created_at: int
    channel: str = ""
    state: str = ""
    reason: str = ""
    conversation: str = ""
    files: tuple[str, ...] = ()
    turn: TurnFacts | None = None


class TurnInProgress(msgspec.Struct, frozen=True, kw_only=True):
    """`number` is how the message it works on can be stopped."""

    number: int
    agent: str
    about: str
    conversation: str
    started_at: int
    text: str = ""
    tools: tuple[str, ...] = ()


class ChatService(OfficeService):
    async def read(self, caller: Caller, agent: str, *, limit: int = 60, before: int = 0) -> list[ChatLine]:
        """The newest, the oldest of them first; with `before`, what came before that number."""
        require_viewer(caller)
        room = await self._context.room()
        lines: list[tuple[int, Message]] = []
        after: int | None = before or None
        while len(lines) < limit:
            page = await room.numbered(
                scope=queues.SCOPE, agent=agent, newest_first=True, after=after, limit=PAGE
            )
            lines += [(number, message) for number, message in page if _is_said(message)]
            if len(page) < PAGE:
                break
            after = page[-1][0]
        lines = lines[:limit]
        turns = await self._turns(room, [message for _, message in lines])
        return [_line(number, message, turns) for number, message in reversed(lines)]

    async def read_team(
        self, caller: Caller, team: str, *, limit: int = 20, before: int = 0
    ) -> list[ChatLine]:
        """What people wrote to a team and its members answered, in the order it was said: the conversations
        that were begun last; with `before`, those that were begun before that number."""
        require_viewer(caller)
        control, room = await self._context.control(), await self._context.room()
        leader = require_team(control, team).leader
        begun: list[str] = []
        after: int | None = before or None
        while len(begun) < limit:
            page = await room.numbered(
                scope=queues.SCOPE,
                agent=leader,
                message_type=MAIL,
                newest_first=True,
                after=after,
                limit=PAGE,
            )
            begun += [
                each.correlation_id or "" for _, each in page if _is_asked(each) and team_of(each) == team
            ]
            if len(page) < PAGE:
                break
            after = page[-1][0]
        lines: list[tuple[int, Message]] = []
        for conversation in dict.fromkeys(begun[:limit]):
            found = await room.numbered(scope=queues.SCOPE, correlation_id=conversation, limit=PAGE)
            lines += [line for line in found if _is_asked(line[1]) or queues.is_outbox(line[1].queue)]
        turns = await self._turns(room, [message for _, message in lines])
        return [_line(number, message, turns) for number, message in sorted(lines, key=lambda line: line[0])]

    async def working(self, caller: Caller, agent: str | None = None) -> list[TurnInProgress]:
        """What agents work on at the moment, with the words and tools so far."""
        require_viewer(caller)
        room = await self._context.room()
        found = await room.numbered(scope=queues.SCOPE, state="claimed", deliveries=True, limit=MOST_WORKING)
        turns: dict[str, TurnInProgress] = {}
        for number, message in found:
            name = worker_of(message)
            if queues.is_outbox(message.queue) or name in turns or agent not in (None, name):
                continue
            turns[name] = await self._progress(room, number, message, name)
        return list(turns.values())

    async def _progress(self, room: "Room", number: int, message: Message, agent: str) -> TurnInProgress:
        text, tools = "", ()
        turn = await room.look(lambda reader: _turn_of(reader, message))
        if turn is not None:
            pieces = await room.records("turn.progress", turn, limit=1000)
            text = "".join(str(each.data.get("text", "")) for each in pieces)
            tools = _tools(await room.records("turn.tool", turn, limit=1000))
        return TurnInProgress(
            number=number,
            agent=agent,
            about=text_of(message),
            conversation=message.correlation_id or "",
            started_at=message.claimed_at or message.updated_at,
            text=text,
            tools=tools,
        )

    async def _turns(self, room: "Room", messages: Iterable[Message]) -> dict[str, TurnFacts]:
        """By the id of the message that was answered."""
        causes = {
            each.causation_id for each in messages if each.causation_id and queues.is_outbox(each.queue)
        }
        stored = await room.look(lambda reader: reader.get_many(causes))
        facts: dict[str, TurnFacts] = {}
        for cause, each in stored.items():
            result = room.to_message(each).result
            turn = result.get("turn") if isinstance(result, dict) else None
            record = await room.latest_record("turn", turn) if isinstance(turn, str) else None
            if record is not None and isinstance(turn, str):
                facts[cause] = _facts(record.data, _tools(await room.records("turn.tool", turn, limit=1000)))
        return facts


def _is_said(message: Message) -> bool:
    return queues.is_outbox(message.queue) or message.message_type in (MAIL, HISTORY)


def _is_asked(message: Message) -> bool:
    """A person's own words, not what a teammate handed on."""
    return message.message_type == MAIL and message.from_agent is None


def _line(number: int, message: Message, turns: dict[str, TurnFacts]) -> ChatLine:
    answered = queues.is_outbox(message.queue)
    body: dict[str, Any] = message.body if isinstance(message.body, dict) else {}
    if message.message_type == HISTORY:
        answered = body.get("role") == "assistant"
    agent = message.agent or message.from_agent or ""
    text = text_of(message) if answered or message.message_type == HISTORY else said(message)
    return ChatLine(
        number=number,
        author=agent if answered else message.sender or message.channel or "",
        text=text.removesuffix(f"\n\n- [{agent}]"),
        is_agent=answered,
        created_at=message.created_at,
        channel=message.channel or "",
        state="dead" if message.message_type == FAILURE else "" if answered else str(message.state),
        reason=message.failure_reason or "",
        conversation=message.correlation_id or "",
        files=tuple(message.files),
        turn=turns.get(message.causation_id or "") if answered else None,
    )


def _turn_of(reader: Reader, message: Message) -> str | None:
    start = reader.last_before(message.claimed_at or message.updated_at)
    for event in reader.events(start, LOOKED):
        if event.type == "record.turn.started" and event.message_id == message.id:
            return event.details.get("key")
    return None


def _tools(records: Iterable[Any]) -> tuple[str, ...]:
    return tuple(str(each.data.get("tool", "")) for each in records if each.data.get("state") == "started")


def _facts(data: dict[str, Any], tools: tuple[str, ...]) -> TurnFacts:
    cost = data.get("cost_usd")
    return TurnFacts(
        cost_usd=float(cost) if cost is not None else None,
        tokens=sum(usage.get(name, 0) for usage in data.get("usage", ()) for name in USED),
        took=max(0, data.get("ended_at", 0) - data.get("started_at", 0)),
        tools=tools,
    )
