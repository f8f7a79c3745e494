"""A word to whoever waits long for an answer: that it waits, and for what. Nothing else depends on it.

It looks at what is open, so a restart forgets nobody; the key of a word keeps it from being said twice.
"""

import contextlib
import logging
from collections import defaultdict
from collections.abc import Sequence

from postroom.channels.pauses import Pauses, Stopping
from postroom.clock import SECOND, Clock
from postroom.errors import IdempotencyConflict, StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.model import Message, NewMessage
from postroom.kernel.states import OPEN
from postroom.office import queues
from postroom.office.ports import RoomPort
from postroom.services.waiting_reasons import explain_guards, explain_state

log = logging.getLogger("postroom.channels")

STILL_OPEN = "office.waiting"
LOOK_S = 30.0
MOST_OPEN = 500
MOST_REASONS = 3


class WaitingWords:
    def __init__(self, room: RoomPort, channel: str, clock: Clock, after_s: float) -> None:
        self._room = room
        self._channel = channel
        self._clock = clock
        self._after = round(after_s * SECOND)
        # Of each chat, when it was last told something.
        self._told: dict[str, int] = {}

    async def run(self, pauses: Pauses) -> None:
        with contextlib.suppress(Stopping):
            while True:
                await pauses.sleep(min(LOOK_S, self._after / SECOND / 4))
                try:
                    await self.look()
                except StoreClosed:
                    return
                except Exception:
                    log.exception(
                        "%s: nobody is told what they wait for; the next look tries again", self._channel
                    )

    async def look(self) -> None:
        """Chats with something that waits too long hear of it, each once in a while."""
        now = self._clock.now()
        waiting: dict[str, list[Message]] = defaultdict(list)
        for queue in await self._room.queues(queues.SCOPE):
            if queues.is_inbox(queue.slug):
                page = await self._room.messages(queue=queue.path, state=list(OPEN), limit=MOST_OPEN)
                for message in page.messages:
                    if self._waits_long(message, now):
                        waiting[message.metadata["address"]["chat"]].append(message)
        self._told = {chat: at for chat, at in self._told.items() if chat in waiting}
        for chat, messages in waiting.items():
            if now - self._told.get(chat, 0) >= self._after:
                self._told[chat] = now
                await self._tell(sorted(messages, key=lambda message: (message.created_at, message.id)))

    def _waits_long(self, message: Message, now: int) -> bool:
        ours = message.channel == self._channel and "address" in message.metadata
        return ours and now - message.created_at >= self._after

    async def _tell(self, messages: Sequence[Message]) -> None:
        """One word for all of them; none when the newest was told of already."""
        newest = messages[-1]
        word = NewMessage(
            body={"text": await self._describe(messages)},
            message_type=STILL_OPEN,
            channel=self._channel,
            sender=newest.sender,
            sender_id=newest.sender_id,
            idempotency_key=f"waiting:{newest.id}",
            metadata={"address": newest.metadata["address"]},
        )
        publish = c.Publish(queue=queues.outbox(self._channel), messages=[word], actor=self._room.actor)
        with contextlib.suppress(IdempotencyConflict):
            await self._room.run(publish)

    async def _describe(self, messages: Sequence[Message]) -> str:
        reasons = list(dict.fromkeys(map(explain_state, messages)))
        for message in messages[-MOST_REASONS:]:
            reasons += [each for each in await explain_guards(self._room, message) if each not in reasons]
        what = "Your message is" if len(messages) == 1 else f"{len(messages)} messages are"
        more = ["…"] if len(reasons) > MOST_REASONS else []
        told = "\n".join([*reasons[:MOST_REASONS], *more])
        return f"{what} not answered yet.\n{told}\n/why tells more, /stop ends it."
