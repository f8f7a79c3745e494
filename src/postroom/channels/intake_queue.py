"""Where a channel's envelopes wait: durable before the platform is told, each once, known for thirty days."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from postroom.channels.model import Envelope, ReceivedMessage
from postroom.errors import IdempotencyConflict
from postroom.kernel import commands as c
from postroom.kernel.model import Message, NewMessage
from postroom.office import queues
from postroom.office.ports import RoomPort

ENVELOPE = "channel.envelope"
CURSOR = "channel.cursor"
TOMBSTONE_S = 30 * 24 * 3600.0


def intake(channel: str) -> str:
    return f"{queues.SCOPE}/intake/{channel}"


def open_intake(channel: str) -> c.Command:
    settings = {"max_retries": queues.CHAT_ATTEMPTS, "retention_s": TOMBSTONE_S}
    return c.CreateQueue(queue=intake(channel), settings=settings, exist_ok=True)


class IntakeQueue:
    def __init__(self, room: RoomPort, channel: str) -> None:
        self._room = room
        self._channel = channel

    async def append(
        self, entries: Sequence[tuple[Envelope, ReceivedMessage]], cursor: Mapping[str, Any] | None = None
    ) -> None:
        """Returns when all of them and the cursor are on disk; those that came before are left out."""
        if not entries and cursor is None:
            return
        messages = [self._describe(envelope, received) for envelope, received in entries]
        try:
            await self._publish(messages, cursor)
        except IdempotencyConflict:
            # The platform tells an event again in other words: one by one, so that it holds up no other.
            for message in messages:
                await self._publish_alone(message)
            await self._publish([], cursor)

    async def read_cursor(self) -> dict[str, Any]:
        document = await self._room.document(CURSOR, self._channel)
        return {} if document is None else dict(document.data)

    async def _publish_alone(self, message: NewMessage) -> None:
        try:
            await self._publish([message])
        except IdempotencyConflict:
            return

    async def _publish(self, messages: list[NewMessage], cursor: Mapping[str, Any] | None = None) -> None:
        actor = self._room.actor
        commands: list[c.Command] = []
        if messages:
            commands.append(c.Publish(queue=intake(self._channel), messages=messages, actor=actor))
        if cursor is not None:
            kept = c.PutDocument(
                kind=CURSOR, key=self._channel, data=dict(cursor), history=False, actor=actor
            )
            commands.append(kept)
        if commands:
            await self._room.run(c.Unit(commands=tuple(commands), actor=actor))

    def _describe(self, envelope: Envelope, received: ReceivedMessage) -> NewMessage:
        return NewMessage(
            body=msgspec.to_builtins(envelope) | {"chat": received.chat},
            message_type=ENVELOPE,
            idempotency_key=envelope.event_id,
            channel=self._channel,
            sender=received.sender,
            sender_id=received.sender_id,
            source_id=received.sender_id,
        )


def read_envelope(message: Message) -> Envelope:
    return Envelope(message.body["event_id"], message.body["raw"])


def read_chat(message: Message) -> str:
    return message.body["chat"]
