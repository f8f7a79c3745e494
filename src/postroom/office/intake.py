"""Mail comes in: a person's words are routed, cleaned and put into inboxes, once per platform message."""

from typing import Any

import msgspec

from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage, Receipt
from postroom.office import places, tags
from postroom.office.post import PostRoom
from postroom.office.routing import Directory, Routed, route


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """What a channel knows of a message. `platform_id` is the platform's own, and is never taken twice."""

    channel: str
    sender: str
    text: str
    sender_id: str | None = None
    platform_id: str | None = None
    agent: str | None = None
    sticky: str | None = None
    files: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}


class Taken(msgspec.Struct, frozen=True):
    """What became of it: where it went, and whether it had come before."""

    routed: Routed
    receipts: tuple[Receipt, ...]

    @property
    def repeated(self) -> bool:
        return all(not receipt.created for receipt in self.receipts)


async def take_in(room: PostRoom, directory: Directory, mail: Incoming) -> Taken:
    """All addressees' copies are published together, or none. They are one conversation."""
    routed = route(mail.text, directory, agent=mail.agent, sticky=mail.sticky)
    conversation = f"{mail.channel}:{mail.platform_id}" if mail.platform_id else None
    commands: list[c.Command] = []
    for letter in routed.letters:
        text = tags.with_attachments(letter.text, mail.files)
        message = NewMessage(
            body={"text": text, "team": letter.team, "via": letter.via},
            message_type="office.mail",
            channel=mail.channel,
            sender=mail.sender,
            sender_id=mail.sender_id,
            agent=letter.agent,
            files=list(mail.files) or None,
            metadata=dict(mail.metadata) or None,
            idempotency_key=f"{conversation}:{letter.agent}" if conversation else None,
            correlation_id=conversation,
            source_type="user",
            source_id=mail.sender_id or mail.sender,
        )
        commands.append(c.Publish(queue=places.inbox(letter.agent), messages=[message], actor=room.actor))
    answers: list[list[Receipt]] = await room.run(c.Unit(commands=tuple(commands), actor=room.actor))
    return Taken(routed, tuple(receipt for receipts in answers for receipt in receipts))
