"""Replies that no platform confirmed: they may have arrived (ambiguous), or were given up (abandoned).

The owner sends them again or lets them be. What may have arrived says so when it comes a second time.
"""

from typing import Any, Literal

import msgspec

from postroom.errors import MessageNotFound, NotFound
from postroom.kernel import commands as c
from postroom.kernel.model import Document, Message, NewMessage
from postroom.kernel.states import State
from postroom.office import queues
from postroom.office.ports import RoomPort
from postroom.office.texts import excerpt
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeService, require_owner

# The kind of document in which channels keep what became of a reply, by the id of its message.
KIND = "delivery"
SENT_AGAIN = "(I send this again, because it may not have reached you. It may be a duplicate.)"
RESENT = "office.resent"
PAGE = 200
EXCERPT = 200
ENDED = frozenset({"confirmed", "ambiguous", "abandoned"})


class UnconfirmedNotFound(NotFound):
    """No unconfirmed reply has the id "{id}". See: postroom channel unconfirmed"""

    code = "UNCONFIRMED_REPLY_NOT_FOUND"


class UnconfirmedReply(msgspec.Struct, frozen=True, kw_only=True):
    """`text` is the beginning of what is in doubt, and `reason` why it is."""

    id: str
    channel: str
    chat: str
    state: Literal["ambiguous", "abandoned"]
    reason: str
    text: str
    files: int
    since: int


class _PieceText(msgspec.Struct):
    text: str = ""


class _Piece(msgspec.Struct):
    kind: str = ""
    text: _PieceText = msgspec.field(default_factory=_PieceText)
    path: str | None = None


class _Planned(msgspec.Struct):
    state: str
    piece: _Piece
    reason: str | None = None
    remark: bool = False


class _Plan(msgspec.Struct):
    """As much of a delivery plan as this must know; the pieces themselves are the channel's."""

    channel: str
    address: dict[str, Any]
    pieces: list[_Planned]

    @property
    def state(self) -> Literal["ambiguous", "abandoned"] | None:
        """None while it is on its way."""
        states = {planned.state for planned in self.pieces}
        if not states <= ENDED:
            return None
        return "abandoned" if "abandoned" in states else "ambiguous" if "ambiguous" in states else None


class UnconfirmedReplies(OfficeService):
    async def list_all(self, caller: Caller, channel: str | None = None) -> list[UnconfirmedReply]:
        """The oldest first, of one channel or of all."""
        require_owner(caller)
        room = await self._context.room()
        found: list[UnconfirmedReply] = []
        after = ""
        while page := await room.documents(KIND, after=after, limit=PAGE):
            after = page[-1].key
            for document in page:
                plan = msgspec.convert(document.data, _Plan)
                if channel in (None, plan.channel) and await _is_open(room, plan, document.key):
                    found.append(_describe(document, plan))
        return sorted(found, key=lambda reply: (reply.since, reply.id))

    async def resend(self, caller: Caller, *ids: str) -> None:
        """All of them or none: what was given up as it is, what may have arrived with a word that says so."""
        require_owner(caller)
        room = await self._context.room()
        commands = [command for each in ids for command in await self._send_again(room, each)]
        await room.run(c.Unit(commands=tuple(commands), actor=caller.actor or room.actor))

    async def dismiss(self, caller: Caller, *ids: str) -> None:
        """All of them or none: they are not sent, and not listed any more."""
        require_owner(caller)
        room = await self._context.room()
        commands: list[c.Command] = []
        for each in dict.fromkeys(ids):
            message, document = await _find_reply(room, each), await room.document(KIND, each)
            if message is not None and message.state is State.DEAD:
                commands.append(c.Discard(message_ids=(each,), actor=room.actor))
            elif document is None or msgspec.convert(document.data, _Plan).state is None:
                raise UnconfirmedNotFound(id=each)
            if document is not None:
                commands.append(c.DropDocument(kind=KIND, key=each, expect=document.version))
        await room.run(c.Unit(commands=tuple(commands), actor=caller.actor or room.actor))

    async def _send_again(self, room: RoomPort, reply_id: str) -> list[c.Command]:
        message, document = await _find_reply(room, reply_id), await room.document(KIND, reply_id)
        if message is not None and message.state is State.DEAD:
            return [c.Replay(message_ids=(reply_id,), actor=room.actor)]
        plan = msgspec.convert(document.data, _Plan) if document is not None else None
        if document is None or plan is None or plan.state != "ambiguous":
            raise UnconfirmedNotFound(id=reply_id)
        pieces = [
            raw["piece"]
            for raw, planned in zip(document.data["pieces"], plan.pieces, strict=True)
            if planned.state == "ambiguous" and not planned.remark
        ]
        again = NewMessage(
            body={"text": SENT_AGAIN, "pieces": pieces},
            message_type=RESENT,
            channel=plan.channel,
            sender=message.sender if message is not None else None,
            sender_id=message.sender_id if message is not None else None,
            correlation_id=message.correlation_id if message is not None else None,
            causation_id=reply_id if message is not None else None,
            metadata={"address": plan.address},
        )
        # Whoever was quicker has taken the document away, and this is refused.
        drop = c.DropDocument(kind=KIND, key=reply_id, expect=document.version)
        publish = c.Publish(queue=queues.outbox(plan.channel), messages=[again], actor=room.actor)
        return [drop, queues.open_outbox(plan.channel), publish]


async def _find_reply(room: RoomPort, reply_id: str) -> Message | None:
    """The message, if it is one of an outbox and still there."""
    try:
        message = await room.get(reply_id)
    except MessageNotFound:
        return None
    queue = (message.origin_queue or message.queue).removeprefix(f"{queues.SCOPE}/")
    return message if message.scope == queues.SCOPE and queues.is_outbox(queue) else None


async def _is_open(room: RoomPort, plan: _Plan, reply_id: str) -> bool:
    """What was abandoned is a dead letter, until somebody replays or discards it."""
    if plan.state != "abandoned":
        return plan.state is not None
    message = await _find_reply(room, reply_id)
    return message is not None and message.state is State.DEAD


def _describe(document: Document, plan: _Plan) -> UnconfirmedReply:
    assert plan.state is not None
    doubtful = [each for each in plan.pieces if each.state == plan.state and not each.remark]
    return UnconfirmedReply(
        id=document.key,
        channel=plan.channel,
        chat=str(plan.address.get("chat", "")),
        state=plan.state,
        reason=next((each.reason for each in doubtful if each.reason), ""),
        text=excerpt(" ".join(each.piece.text.text for each in doubtful), EXCERPT),
        files=sum(each.piece.path is not None for each in doubtful),
        since=document.updated_at,
    )
