"""The trace of a conversation: what caused what, who did it, how long it took, how it ended, what it cost."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec

from postroom.kernel.ledger import Event
from postroom.kernel.model import Message
from postroom.kernel.states import Change
from postroom.office import queues
from postroom.office.lanes.batches import text_of
from postroom.office.ports import RoomPort, conversation
from postroom.office.texts import excerpt

TEXT_CHARS = 200


class TurnTaken(msgspec.Struct, frozen=True, kw_only=True):
    turn_id: str
    agent: str
    outcome: str
    started_at: int
    ended_at: int
    cost_usd: str | None = None
    tokens: int = 0


class TraceStep(msgspec.Struct, kw_only=True):
    """One message: `who` wrote it to `to`. Times are microseconds since 1970."""

    message_id: str
    kind: str
    who: str
    to: str
    text: str
    state: str
    attempts: int
    reason: str | None = None
    began_at: int
    ended_at: int | None = None
    turns: list[TurnTaken] = []
    causes: list["TraceStep"] = []


class ConversationTrace(msgspec.Struct, frozen=True, kw_only=True):
    correlation_id: str
    roots: list[TraceStep]
    began_at: int
    ended_at: int
    messages: int
    turns: int
    cost_usd: str | None


async def trace(
    room: RoomPort, correlation_id: str, *, text_chars: int | None = TEXT_CHARS
) -> ConversationTrace:
    """As a tree by causation. What was pruned is missing; what it caused then stands at the root.

    Texts are cut after `text_chars`; None leaves them whole.
    """
    kept = await conversation(room, correlation_id, scope=queues.SCOPE)
    messages = [message for message in kept if message.message_type != "office.gather"]
    steps = {message.id: _step(message, text_chars) for message in messages}
    began = min((message.created_at for message in messages), default=0)
    ended = max((message.updated_at for message in messages), default=0)
    for event in await _events(room, correlation_id, began, ended):
        await _add(room, event, steps)
    roots: list[TraceStep] = []
    for message in messages:
        above = steps.get(message.causation_id or "")
        (above.causes if above is not None else roots).append(steps[message.id])
    taken = [turn for step in steps.values() for turn in step.turns]
    costs = [Decimal(turn.cost_usd) for turn in taken if turn.cost_usd is not None]
    return ConversationTrace(
        correlation_id=correlation_id,
        roots=roots,
        began_at=began,
        ended_at=ended,
        messages=len(messages),
        turns=len(taken),
        cost_usd=str(sum(costs, Decimal(0))) if costs else None,
    )


def _step(message: Message, text_chars: int | None) -> TraceStep:
    text = str(_body(message).get("post") or own_words(message))
    if message.queue.startswith("outbox/"):
        who, to = f"@{message.agent}", message.sender or message.channel or ""
    elif message.queue.startswith("room/"):
        who, to = f"@{message.from_agent or 'user'}", f"#{message.queue.removeprefix('room/')}"
    else:
        who = f"@{message.from_agent}" if message.from_agent else message.sender or ""
        to = f"@{message.agent}"
    return TraceStep(
        message_id=message.id,
        kind=message.message_type.removeprefix("office."),
        who=who,
        to=to,
        text=text if text_chars is None else excerpt(text, text_chars),
        state=message.state.value,
        attempts=message.attempts,
        reason=message.failure_reason,
        began_at=message.created_at,
        ended_at=message.finished_at,
    )


def _body(message: Message) -> dict[str, Any]:
    return message.body if isinstance(message.body, dict) else {}


def walk(steps: list[TraceStep]) -> Iterator[TraceStep]:
    """Every step, each before what it caused."""
    ahead = list(reversed(steps))
    while ahead:
        step = ahead.pop()
        yield step
        ahead.extend(reversed(step.causes))


def find_critical_path(trace: ConversationTrace) -> list[TraceStep]:
    """From the first message to the one that ended last: nothing else could have made the whole shorter."""
    above: dict[str, TraceStep] = {}
    last: tuple[int, TraceStep] | None = None
    for step in walk(trace.roots):
        above.update((cause.message_id, step) for cause in step.causes)
        # A reply that nobody has fetched yet keeps nobody waiting.
        end = step.ended_at or (step.began_at if step.kind == "reply" else trace.ended_at)
        if last is None or end >= last[0]:
            last = end, step
    path: list[TraceStep] = []
    at = last[1] if last is not None else None
    while at is not None:
        path.append(at)
        at = above.get(at.message_id)
    return path[::-1]


def own_words(message: Message) -> str:
    """What was written to this one, without the header and the context that all addressees share."""
    text = text_of(message)
    if message.message_type != "office.note":
        return text
    return text.partition("]:\n")[2].rpartition("Directed to you:\n")[2]


async def _add(room: RoomPort, event: Event, steps: dict[str, TraceStep]) -> None:
    step = steps.get(event.message_id or "")
    if step is None or event.type != "record.turn":
        return
    key = event.details["key"]
    record = await room.latest_record("turn", key)
    if record is None:
        return
    data = record.data
    used = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    step.turns.append(
        TurnTaken(
            turn_id=key,
            agent=data["agent"],
            outcome=data["outcome"],
            started_at=data["started_at"],
            ended_at=data["ended_at"],
            cost_usd=data["cost_usd"],
            tokens=sum(usage.get(name, 0) for usage in data["usage"] for name in used),
        )
    )


async def _events(room: RoomPort, correlation_id: str, began: int, ended: int) -> list[Event]:
    """The ledger has no index by conversation, but can be searched by time."""
    first, end = await room.look(lambda reader: reader.span(began, ended))
    found: list[Event] = []
    async for event in room.events(first - 1):
        if event.seq >= end:
            break
        if event.correlation_id == correlation_id and event.type not in (Change.EXTENDED,):
            found.append(event)
    return found
