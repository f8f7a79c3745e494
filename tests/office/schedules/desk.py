"""What tests of schedules stand on: an office with two agents and a team, and a clock that stands."""

from datetime import datetime

from postroom import Message, Room
from postroom.clock import ManualClock, from_datetime
from postroom.kernel import commands as c
from postroom.office import queues
from postroom.office.intake.routing import AgentRef, OfficeDirectory, TeamRef
from postroom.office.schedules import Scheduler, Schedules
from postroom.runtime.leader import Leader

DIRECTORY = OfficeDirectory(
    [AgentRef("lead", "Lead"), AgentRef("coder", "Coder")], [TeamRef("dev", "Dev", "lead", ("lead", "coder"))]
)


class Unchallenged(Leader):
    """Believes that it leads, whoever else does."""

    async def lead(self) -> bool:
        return True


def moment(text: str) -> int:
    return from_datetime(datetime.fromisoformat(text))


async def furnish(room: Room, directory: OfficeDirectory = DIRECTORY, depth: int = 100_000) -> None:
    commands = queues.furnish(directory, (), attempts=3, depth=depth)
    await room.run(c.Unit(commands=tuple(commands)))


def a_book(
    room: Room, clock: ManualClock, scheduler: Scheduler | None = None, zone: str = "UTC"
) -> Schedules:
    changed = scheduler.wake if scheduler else lambda: None
    return Schedules(room, lambda: DIRECTORY, clock, zone=zone, changed=changed)


def a_clockwork(room: Room, clock: ManualClock) -> Scheduler:
    """Nobody reads the mail of these tests, so times are sent for all the same."""
    return Scheduler(room, lambda: DIRECTORY, clock, overlap=True)


async def mail(room: Room, agent: str = "coder") -> list[Message]:
    """All letters to an agent so far, in the order of entry."""
    found: list[Message] = []
    cursor = None
    while True:
        page = await room.messages(queue=queues.inbox(agent), cursor=cursor, limit=1000)
        found += page.messages
        cursor = page.next_cursor
        if cursor is None:
            return found


def slots(messages: list[Message]) -> list[str]:
    """The times for which they were sent."""
    return [(message.idempotency_key or "").rpartition("/")[2] for message in messages]
