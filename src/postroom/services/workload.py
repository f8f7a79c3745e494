"""How the office's mail stands: counters, what is being worked on, and dead letters."""

import msgspec

from postroom.errors import NotFound
from postroom.kernel.model import DEAD_LETTER, Message
from postroom.kernel.states import State
from postroom.office import message_rows, queues
from postroom.office.message_rows import NumberedMessage
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeService, require_member, require_owner, require_viewer

MOST = 500
TERMINATED = "Manually terminated by user"
ROOM = queues.room_of("").removeprefix(f"{queues.SCOPE}/")
INBOX = queues.inbox("").removeprefix(f"{queues.SCOPE}/")


class DeadNotFound(NotFound):
    """dead message not found"""


class ProcessingNotFound(NotFound):
    """processing message not found"""


class WorkloadCounts(msgspec.Struct, frozen=True, kw_only=True):
    incoming: int
    queued: int
    processing: int
    completed: int
    dead: int
    outgoing: int
    conversations: int


class AgentWorkload(msgspec.Struct, frozen=True, kw_only=True):
    agent: str
    pending: int
    queued: int
    processing: int


class WorkInHand(msgspec.Struct, frozen=True, kw_only=True):
    """A message that an agent has claimed; only the first of each agent is worked on, the others are next."""

    number: int
    message: Message
    agent: str
    active: bool
    started_at: int
    took: int


class WorkloadService(OfficeService):
    async def counts(self, caller: Caller) -> WorkloadCounts:
        require_viewer(caller)
        counts = await (await self._context.room()).scope_counts(queues.SCOPE)
        inboxes = [found for slug, found in counts.items() if slug.startswith(INBOX)]
        rooms = [found for slug, found in counts.items() if slug.startswith(ROOM)]
        outboxes = [found for slug, found in counts.items() if queues.is_outbox(slug)]
        working = sum(1 for found in inboxes if found.claimed)
        claimed = sum(found.claimed for found in inboxes)
        return WorkloadCounts(
            incoming=sum(found.waiting for found in inboxes),
            queued=claimed - working,
            processing=working,
            completed=sum(found.completed for found in (*inboxes, *rooms)),
            dead=counts[DEAD_LETTER].dead,
            outgoing=sum(found.open for found in outboxes),
            conversations=claimed,
        )

    async def by_agent(self, caller: Caller) -> list[AgentWorkload]:
        """Agents without any open mail are left out."""
        require_viewer(caller)
        counts = await (await self._context.room()).scope_counts(queues.SCOPE)
        return [
            AgentWorkload(
                agent=slug.removeprefix(INBOX),
                pending=found.waiting,
                queued=max(0, found.claimed - 1),
                processing=min(1, found.claimed),
            )
            for slug, found in counts.items()
            if slug.startswith(INBOX) and found.open
        ]

    async def dead(self, caller: Caller, limit: int = MOST) -> list[NumberedMessage]:
        """The newest first."""
        require_viewer(caller)
        return await message_rows.newest(await self._context.room(), limit, state=State.DEAD)

    async def retry_dead(self, caller: Caller, number: int) -> None:
        """Back to where it came from, with a clean slate of attempts."""
        require_member(caller)
        message = await self._dead_letter(number)
        await (await self._context.room()).replay(message.id)

    async def discard_dead(self, caller: Caller, number: int) -> None:
        require_owner(caller)
        message = await self._dead_letter(number)
        await (await self._context.room()).discard(message.id)

    async def in_hand(self, caller: Caller) -> list[WorkInHand]:
        require_viewer(caller)
        now = self._context.clock.now()
        room = await self._context.room()
        found = await room.numbered(scope=queues.SCOPE, state=State.CLAIMED, deliveries=True, limit=MOST)
        busy: set[str] = set()
        work: list[WorkInHand] = []
        for number, message in found:
            if queues.is_outbox(message.queue):
                continue
            agent = worker_of(message)
            started = message.claimed_at or message.updated_at
            work.append(
                WorkInHand(
                    number=number,
                    message=message,
                    agent=agent,
                    active=agent not in busy,
                    started_at=started,
                    took=max(0, now - started),
                )
            )
            busy.add(agent)
        return work

    async def kill(self, caller: Caller, number: int) -> str:
        """End a message that is being worked on, for good; its turn stops at once, and its person is told.
        The agent's name."""
        require_member(caller)
        control, room = await self._context.control(), await self._context.room()
        message = await message_rows.by_number(room, number, state=State.CLAIMED)
        if message is None or queues.is_outbox(message.queue):
            raise ProcessingNotFound
        await control.office.cancel(message.id, TERMINATED, is_told=True)
        return worker_of(message)

    async def _dead_letter(self, number: int) -> Message:
        message = await message_rows.by_number(await self._context.room(), number, state=State.DEAD)
        if message is None:
            raise DeadNotFound
        return message


def worker_of(message: Message) -> str:
    return message.subscription or message.agent or "default"
