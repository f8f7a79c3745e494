"""Reviews are told to the people who can answer them in a chat, with a button for each option, once.

The person of the conversation is asked; where there is none on a chat, or only a guest, the owners are.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

from postroom.errors import IdempotencyConflict, NotFound
from postroom.kernel import commands as c
from postroom.kernel.ledger import Event
from postroom.kernel.model import Message, NewMessage
from postroom.kernel.reviews.sections import option_id
from postroom.kernel.states import OPEN, Change
from postroom.office import queues
from postroom.office.pairing import Pairings, SenderRole
from postroom.office.ports import RoomPort
from postroom.office.texts import fitted

NOTICE = "office.notice"
# Where agents' questions and the reviews of rules wait.
QUEUE = "reviews"
CODE_CHARS = 6
YES = ("approve", "yes", "allow", "accept", "ok")
NO = ("deny", "reject", "no", "decline", "refuse")


class ReviewNotices:
    def __init__(self, room: RoomPort, pairings: Pairings) -> None:
        self._room = room
        self._pairings = pairings

    async def see(self, event: Event) -> None:
        if event.type != Change.PUBLISHED or event.message_id is None or event.queue != QUEUE:
            return
        try:
            review = await self._room.get(event.message_id)
        except NotFound:
            return
        spec = review.hitl_spec
        if review.state not in OPEN or not isinstance(spec, dict) or "sections" not in spec:
            return
        for channel, sender_id, address in await self._find_people(review):
            await self._ask(review, spec, channel, sender_id, address)

    async def _find_people(self, review: Message) -> list[tuple[str, str, Any]]:
        cause = await _chat_behind(self._room, review)
        if cause is not None and cause.channel and cause.sender_id:
            role = await self._pairings.find_role(cause.channel, cause.sender_id)
            if role in (SenderRole.OWNER, SenderRole.MEMBER):
                return [(cause.channel, cause.sender_id, cause.metadata.get("address"))]
        return [
            (each.channel, each.sender_id, None)
            for each in await self._pairings.approved()
            if each.role is SenderRole.OWNER
        ]

    async def _ask(
        self, review: Message, spec: dict[str, Any], channel: str, sender_id: str, address: Any
    ) -> None:
        code, options = review_code(review.id), list_options(spec)
        message = NewMessage(
            body={
                "text": fitted(_describe(spec)),
                "choices": options,
                "says": [f"/approve {code} {option}" for option in options],
                "review": review.id,
            },
            message_type=NOTICE,
            channel=channel,
            sender_id=sender_id,
            idempotency_key=f"review:{review.id}:{sender_id}",
            correlation_id=review.correlation_id,
            metadata={"address": address} if address else None,
        )
        publish = c.Publish(queue=queues.outbox(channel), messages=[message], actor=self._room.actor)
        with contextlib.suppress(IdempotencyConflict):
            commands = (queues.open_outbox(channel), publish)
            await self._room.run(c.Unit(commands=commands, actor=self._room.actor))


async def person_of_review(room: RoomPort, review: Message) -> tuple[str | None, str | None]:
    """Channel and sender of the conversation it belongs to."""
    cause = await _chat_behind(room, review)
    return (None, None) if cause is None else (cause.channel, cause.sender_id)


async def _chat_behind(room: RoomPort, review: Message) -> Message | None:
    """The message of a chat that its conversation began with."""
    if review.correlation_id is None:
        return None
    page = await room.messages(
        scope=queues.SCOPE, correlation_id=review.correlation_id, message_type="office.mail", limit=10
    )
    return next((cause for cause in page.messages if "address" in cause.metadata), None)


def review_code(message_id: str) -> str:
    return message_id[-CODE_CHARS:].lower()


def list_options(spec: dict[str, Any]) -> list[str]:
    decision = next(section for section in spec["sections"] if section["type"] == "decision")
    return [str(option_id(option)) for option in decision["options"]]


def find_option(spec: dict[str, Any], words: Sequence[str], approving: bool) -> str | None:
    """The option that is meant: the one that is named, else the one that says yes, or no."""
    options = list_options(spec)
    by_word = {option.casefold(): option for option in options}
    if words:
        return by_word.get(" ".join(words).casefold())
    return next((by_word[word] for word in (YES if approving else NO) if word in by_word), None)


def _describe(spec: dict[str, Any]) -> str:
    parts = [str(part.get("content", "")) for part in spec["sections"] if part["type"] == "context"]
    return "\n\n".join([f"**{spec.get('title') or 'A decision is asked for'}**", *parts])
