"""One answer for a conversation, when all who were asked are done; or, at the time-out, from those who are.

Nothing is remembered here. The answers are with the messages they answer, and the envelope, a delayed message
that is published with the person's own, stands for the answer that is owed. Whoever ends the envelope sends
the answer, in one unit, so there is never a second one. Who answers later than that is heard separately.
"""

import asyncio
import contextlib
import hashlib
from typing import Any

import msgspec

from postroom.errors import ClaimLost, IdempotencyConflict, NotFound, WrongState
from postroom.kernel import commands as c
from postroom.kernel.ledger import Event
from postroom.kernel.model import Message
from postroom.kernel.states import OPEN, Change, State
from postroom.office import queues
from postroom.office.lanes.batches import PASSED_ON, is_combined
from postroom.office.plugins import fitting
from postroom.office.ports import RoomPort, conversation
from postroom.office.turns import outcomes, replies
from postroom.office.turns.replies import ReplyRules, ReplyText

BETWEEN = "\n\n------\n\n"
SILENT = "_(had nothing to say.)_"
ENDS = frozenset({Change.COMPLETED, Change.DEAD_LETTERED, Change.CANCELLED, Change.EXPIRED, Change.DISCARDED})


class ReplyPart(msgspec.Struct, frozen=True):
    """What one message of the conversation came to. A mark tells an answer from an earlier failure, and a
    failure from one before it."""

    mark: str
    agent: str
    text: str
    files: tuple[str, ...] = ()
    failed: bool = False
    metadata: dict[str, Any] = {}


class CombinedConversation(msgspec.Struct, frozen=True):
    """A conversation as it stands."""

    envelope: Message | None
    parts: tuple[ReplyPart, ...]
    missing: tuple[str, ...]
    sent: frozenset[str]
    branches: dict[str, Message]


class ReplyCombiner:
    def __init__(self, room: RoomPort, rules: ReplyRules) -> None:
        self._room = room
        self._rules = rules

    async def see(self, event: Event) -> None:
        """Whenever a message of an agent ends, however it ends, its conversation may be complete."""
        if event.scope != queues.SCOPE or event.type not in ENDS or event.correlation_id is None:
            return
        if not queues.is_inbox(event.queue) and not queues.is_inbox(event.details.get("from")):
            return
        if not await self._is_branch(event.message_id):
            return
        talk = await self.talk(event.correlation_id)
        if talk.envelope is None or talk.envelope.state not in OPEN:
            await self._send_late(talk)
        elif not talk.missing:
            await self._send(talk, c.Cancel(message_id=talk.envelope.id, reason="answered"))

    async def _is_branch(self, message_id: str | None) -> bool:
        try:
            return is_combined(await self._room.get(message_id or ""))
        except NotFound:
            return False  # pruned, and answered long ago

    async def overdue(self, envelope: Message) -> None:
        """The time-out has come: what there is goes out, and says who is missing."""
        talk = await self.talk(envelope.correlation_id or "")
        talk = msgspec.structs.replace(talk, envelope=envelope)
        await self._send(talk, c.Complete(**outcomes.held(envelope, self._room.actor)))

    async def talk(self, correlation_id: str) -> CombinedConversation:
        messages = await conversation(self._room, correlation_id, scope=queues.SCOPE)
        envelope = next((m for m in messages if m.message_type == "office.gather"), None)
        branches = {m.id: m for m in messages if is_combined(m)}
        ended = [m for m in branches.values() if m.state not in OPEN]
        ended.sort(key=lambda message: message.finished_at or 0)
        parts = tuple(part for message in ended if (part := _part(message)) is not None)
        missing = dict.fromkeys(m.agent or "" for m in branches.values() if m.state in OPEN)
        sent = {mark for m in messages if isinstance(m.body, dict) for mark in m.body.get("parts", ())}
        return CombinedConversation(envelope, parts, tuple(missing), frozenset(sent), branches)

    async def _send(self, talk: CombinedConversation, closing: c.Command) -> None:
        envelope = talk.envelope
        assert envelope is not None
        commands = [closing]
        if talk.parts or talk.missing:
            reply = await asyncio.to_thread(combine, talk, self._rules)
            agent = talk.parts[0].agent if len(talk.parts) == 1 else envelope.agent or ""
            marks = tuple(part.mark for part in talk.parts)
            nobody = bool(talk.parts) and not talk.missing and all(part.failed for part in talk.parts)
            commands += outcomes.tell(
                envelope,
                agent,
                reply.text,
                kind="office.failure" if nobody else "office.reply",
                files=reply.files,
                parts=marks,
                metadata=_metadata(talk.parts, envelope.metadata),
                together=_together(talk),
                whole=reply.whole,
            )
        # Somebody else was quicker: then the answer is sent.
        with contextlib.suppress(WrongState, ClaimLost):
            await self._room.run(c.Unit(commands=tuple(commands), actor=self._room.actor))

    async def _send_late(self, talk: CombinedConversation) -> None:
        for part in talk.parts:
            if part.mark in talk.sent:
                continue
            cause = talk.branches[part.mark.partition(":")[0]]
            kind = "office.failure" if part.failed else "office.reply"
            reply = ReplyText(part.text, part.files)
            if not part.failed:
                reply = await asyncio.to_thread(
                    replies.finish, reply, part.agent, _name(part.mark), self._rules
                )
            commands = outcomes.tell(
                cause,
                part.agent,
                reply.text,
                kind=kind,
                files=reply.files,
                key=f"late:{part.mark}",
                parts=(part.mark,),
                metadata=part.metadata,
                whole=reply.whole,
            )
            with contextlib.suppress(IdempotencyConflict):
                await self._room.run(c.Unit(commands=tuple(commands), actor=self._room.actor))


def combine(talk: CombinedConversation, rules: ReplyRules) -> ReplyText:
    """One answer alone stands for itself; several are told apart by who gave them."""
    notes = [_missing(talk.missing)] if talk.missing else []
    files = tuple(file for part in talk.parts for file in part.files)
    name = _name(talk.envelope.id if talk.envelope else "")
    if len(talk.parts) == 1 and not talk.parts[0].failed:
        part = talk.parts[0]
        return replies.finish(ReplyText(part.text, files), part.agent, name, rules, notes)
    texts = [part.text if part.failed else f"@{part.agent}: {part.text or SILENT}" for part in talk.parts]
    text = BETWEEN.join(texts) or "Nobody has answered yet."
    unsigned = msgspec.structs.replace(rules, signature=False)
    kept = files[: rules.files_per_message]
    if len(kept) < len(files):
        notes.append(
            f"{len(files) - len(kept)} more files were not sent: at most {len(kept)} go with one answer."
        )
    return replies.finish(ReplyText(text, kept), "", name, unsigned, notes)


def _together(talk: CombinedConversation) -> list[str]:
    """Conversations of the same person that were answered in turns of this one."""
    results = [each.result for each in talk.branches.values() if isinstance(each.result, dict)]
    return list(dict.fromkeys(other for result in results for other in result.get("together", ())))


def _metadata(parts: tuple[ReplyPart, ...], beside: dict[str, Any]) -> dict[str, Any]:
    """What plugins said of the answers; of the same name, the last answer's. Too much of it is left out."""
    merged: dict[str, Any] = {}
    for part in parts:
        merged |= part.metadata
    return fitting(merged, beside)


def _missing(agents: tuple[str, ...]) -> str:
    names = ", ".join(f"@{agent}" for agent in agents)
    who = f"{names} is" if len(agents) == 1 else f"{names} are"
    return f"_({who} still at work. What comes later will be sent when it is there.)_"


def _part(message: Message) -> ReplyPart | None:
    agent, mark = message.agent or "", f"{message.id}:{message.state.value}"
    if message.state is State.COMPLETED:
        result = message.result if isinstance(message.result, dict) else {}
        if "answer" not in result:
            return None  # it was answered together with another
        files, metadata = tuple(result.get("files", ())), result.get("metadata", {})
        return ReplyPart(mark, agent, result["answer"], files, metadata=metadata)
    mark = f"{mark}:{message.finished_at}"
    reason = message.failure_reason or f"its message was {message.state.value}"
    if message.state is State.CANCELLED and reason.startswith(PASSED_ON):
        return None  # the other one answers
    if message.state is State.CANCELLED:
        return ReplyPart(mark, agent, f"@{agent} did not answer: {reason}", failed=True)
    return ReplyPart(mark, agent, outcomes.gave_up(agent, reason, [message]), failed=True)


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
