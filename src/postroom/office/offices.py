"""An office at work: it is furnished from its settings, takes mail in, and runs a lane for every agent."""

import asyncio
from pathlib import Path

from postroom.clock import Clock, SystemClock
from postroom.kernel import commands as c
from postroom.office import places
from postroom.office.intake import Incoming, Taken, take_in
from postroom.office.lanes import Lane, Worker
from postroom.office.outcomes import Rules
from postroom.office.post import PostRoom
from postroom.office.routing import Directory
from postroom.office.sessions import Sessions
from postroom.providers.protocol import TurnLimits
from postroom.providers.registry import Choice, Registry
from postroom.settings.model import Settings


class Office:
    def __init__(
        self,
        room: PostRoom,
        settings: Settings,
        registry: Registry,
        *,
        home: Path | None = None,
        clock: Clock | None = None,
        turns_at_once: int = 8,
    ) -> None:
        self._room = room
        self._settings = settings
        self._directory = Directory.of(settings)
        guards = settings.guards
        rules = Rules(
            hops=guards.hops,
            mentions=guards.mentions_per_answer,
            attempts=guards.attempts,
            signature=settings.replies.signature,
        )
        present = settings.present_agents()
        sessions = Sessions(room, {agent: settings.session_scope(agent) for agent in present})
        slots = asyncio.Semaphore(turns_at_once)
        self._lanes = [
            Lane(
                room,
                _worker(settings, agent, home),
                self._directory,
                registry,
                sessions,
                rules,
                clock or SystemClock(),
                slots,
            )
            for agent in present
        ]
        self._running: list[asyncio.Task[None]] = []

    @property
    def directory(self) -> Directory:
        return self._directory

    async def furnish(self) -> None:
        commands = places.furnish(
            self._directory,
            self._settings.channels.enabled,
            attempts=self._settings.guards.attempts,
            depth=self._settings.limits.inbox_depth,
        )
        await self._room.run(c.Unit(commands=tuple(commands), actor=self._room.actor))

    async def take_in(self, mail: Incoming) -> Taken:
        return await take_in(self._room, self._directory, mail)

    def start(self) -> None:
        self._running = [asyncio.create_task(lane.run()) for lane in self._lanes]

    async def stop(self, *, grace: float = 10.0) -> None:
        """Turns in hand may finish for `grace` seconds; then they are ended and their mail is given back."""
        for lane in self._lanes:
            lane.stop()
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            self._running = []


def _worker(settings: Settings, agent: str, home: Path | None) -> Worker:
    own = settings.present_agents()[agent]
    guards = settings.guards
    return Worker(
        agent=agent,
        workspace=settings.agent_directory(agent, home),
        choices=(
            Choice(own.provider, own.model),
            *(Choice(fallback.provider, fallback.model) for fallback in own.fallbacks),
        ),
        system_prompt=lambda: own.system_prompt or "",
        limits=TurnLimits(
            wall_clock=own.turn_timeout_s or guards.turn_timeout_s,
            idle=guards.idle_timeout_s,
            output_bytes=guards.output_bytes,
            grace=guards.grace_s,
        ),
    )
