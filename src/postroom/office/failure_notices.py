"""Messages that ended without a turn: worn out, cancelled, or too late. Their person is told, once.

What fails in a turn is told by the lane, in the unit that ends it.
"""

import contextlib
import logging

from postroom.errors import IdempotencyConflict, NotFound
from postroom.kernel import commands as c
from postroom.kernel.ledger import Event
from postroom.kernel.model import Message
from postroom.kernel.states import Change
from postroom.office import queues
from postroom.office.lanes.batches import is_combined
from postroom.office.ports import RoomPort
from postroom.office.turns import outcomes, rate_limits
from postroom.providers.protocol import ErrorKind

log = logging.getLogger("postroom.office")

# Who ends a message by a guard says so itself.
TOLD_ELSEWHERE = frozenset({*(kind.value for kind in ErrorKind), rate_limits.GIVEN_UP, "guard"})


class FailureNotices:
    def __init__(self, room: RoomPort) -> None:
        self._room = room

    async def see(self, event: Event) -> None:
        if event.scope != queues.SCOPE or event.message_id is None:
            return
        if event.type == Change.DEAD_LETTERED:
            ended = queues.is_inbox(event.details.get("from"))
            if not ended or event.details.get("kind") in TOLD_ELSEWHERE:
                return
        elif event.type not in (Change.EXPIRED, Change.CANCELLED) or not queues.is_inbox(event.queue):
            return
        await self._tell(event, event.message_id)

    async def _tell(self, event: Event, message_id: str) -> None:
        try:
            message = await self._room.get(message_id)
        except NotFound:
            return  # pruned long ago
        if is_combined(message) or (event.type == Change.CANCELLED and not _must_hear(event, message)):
            return
        agent = message.agent or ""
        if event.type == Change.EXPIRED:
            text = f"@{agent} did not get to your message in time, and it has expired. Send it again."
        elif event.type == Change.CANCELLED:
            text = f"Your message to @{agent} was cancelled, and gets no answer."
        else:
            reason = str(event.details.get("reason") or "it could not be worked on").rstrip(".")
            text = outcomes.gave_up(agent, f"{reason}.", [message])
        log.warning("message %s for @%s is given up (%s)", message_id, agent, event.type)
        key = f"obituary:{message_id}:{event.seq}"
        told = outcomes.tell(message, agent, text, kind="office.failure", key=key)
        if told:
            with contextlib.suppress(IdempotencyConflict):
                await self._room.run(c.Unit(commands=tuple(told), actor=self._room.actor))


def _must_hear(event: Event, message: Message) -> bool:
    """Somebody in a chat waits for the answer, and did not stop it themselves."""
    in_chat = "address" in message.metadata and message.hop == 0
    return in_chat and event.actor != f"{message.channel}/{message.sender_id}"[:500]
