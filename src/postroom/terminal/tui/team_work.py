"""What the screen of a team asks of a server: counts, dead letters, what agents work on; and its verbs."""

from typing import TYPE_CHECKING

import msgspec

from postroom.errors import NotFound
from postroom.office.lanes.batches import text_of
from postroom.services.callers import Caller

if TYPE_CHECKING:
    from postroom.services.server import ServerServices
    from postroom.services.workload import WorkloadCounts
    from postroom.terminal.tui.floor import Activity

MOST_DEAD = 50


class DeadLetter(msgspec.Struct, frozen=True):
    number: int
    agent: str
    reason: str
    text: str
    attempts: int


class TeamSnapshot(msgspec.Struct, frozen=True):
    """`turns` are the numbers of what is worked on, by agent."""

    counts: "WorkloadCounts"
    dead: tuple[DeadLetter, ...]
    turns: dict[str, int]


class TeamWork:
    """Of these agents only; they are those of one team, or all."""

    def __init__(self, services: "ServerServices", caller: Caller, agents: frozenset[str]) -> None:
        self._services = services
        self._caller = caller
        self._agents = agents

    async def look(self) -> TeamSnapshot:
        workload = self._services.workload
        counts = await workload.counts(self._caller)
        found = await workload.dead(self._caller, MOST_DEAD) if counts.dead else []
        dead = (
            DeadLetter(
                number=each.number,
                agent=each.message.agent or "",
                reason=each.message.failure_reason or "",
                text=text_of(each.message),
                attempts=each.message.attempts,
            )
            for each in found
        )
        turns = {each.agent: each.number for each in await workload.in_hand(self._caller) if each.active}
        return TeamSnapshot(
            counts,
            tuple(each for each in dead if each.agent in self._agents),
            {agent: number for agent, number in turns.items() if agent in self._agents},
        )

    async def stop(self, number: int) -> str:
        return await self._services.workload.kill(self._caller, number)

    async def retry(self, number: int) -> None:
        await self._services.workload.retry_dead(self._caller, number)

    async def describe(self, activity: "Activity") -> str:
        """What was said, and how the conversation stands that it belongs to."""
        lines = [activity.whole]
        if activity.message and activity.channel:
            try:
                status = await self._services.conversations.status(
                    self._caller, activity.message, activity.channel
                )
            except NotFound:
                return activity.whole  # it was put away meanwhile
            lines.append("")
            for step in status.steps:
                sender = f"@{step.from_agent} → " if step.from_agent else ""
                problem = f" ({step.problem})" if step.problem else ""
                lines.append(f"{sender}@{step.agent}: {step.state}, attempt {step.attempts}{problem}")
            lines += [f"failed: {reason}" for reason in status.failures]
            if status.paused:
                lines.append(f"paused by {status.paused}")
        return "\n".join(lines)
