"""The lane of an agent: its mail is worked through one turn at a time, over all processes and hosts.

A lane is a lease in the store. Whoever has it claims all that waits, keeps the claims alive while the agent
works, and commits what follows from each turn as one unit.
"""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from postroom.clock import Clock
from postroom.errors import ClaimLost, PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.office import outcomes, places
from postroom.office.batches import Batch, group
from postroom.office.outcomes import Rules
from postroom.office.post import PostRoom
from postroom.office.routing import Directory
from postroom.office.sessions import Sessions
from postroom.office.turns import Turn, take_turn
from postroom.providers.protocol import (
    ErrorKind,
    Failed,
    Finished,
    TextChunk,
    ToolUse,
    TurnEvent,
    TurnLimits,
    TurnRequest,
)
from postroom.providers.registry import Choice, Registry

log = logging.getLogger("postroom.lanes")

LANE_S = 30.0
WAIT_S = 5.0
PAUSE_S = 1.0


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent's turns are executed."""

    agent: str
    workspace: Path
    choices: tuple[Choice, ...]
    system_prompt: Callable[[], str] = str
    limits: TurnLimits = TurnLimits()


class Lane:
    def __init__(
        self,
        room: PostRoom,
        worker: Worker,
        directory: Directory,
        registry: Registry,
        sessions: Sessions,
        rules: Rules,
        clock: Clock,
        turns: asyncio.Semaphore,
    ) -> None:
        self._room = room
        self._worker = worker
        self._directory = directory
        self._registry = registry
        self._sessions = sessions
        self._rules = rules
        self._clock = clock
        self._turns = turns
        self._stopping = asyncio.Event()
        self._holder = f"{room.actor}/{uuid.uuid4().hex[:8]}"

    def stop(self) -> None:
        """After the turn in hand; what was claimed besides is given back."""
        self._stopping.set()

    async def run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    await self._round()
                except StoreClosed:
                    return
                except PostroomError as error:
                    log.error("the lane of @%s pauses: %s", self._worker.agent, error)
                    await self._sleep(PAUSE_S)
        finally:
            with contextlib.suppress(PostroomError):
                await self._lead(0)

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def _lead(self, seconds: float) -> bool:
        lane = f"lane/{self._worker.agent}"
        return await self._room.run(
            c.Lead(name=lane, holder=self._holder, seconds=seconds, actor=self._holder)
        )

    async def _round(self) -> None:
        if not await self._lead(LANE_S):
            await self._sleep(PAUSE_S)
            return
        mail = await self._claim()
        if not mail:
            return
        beat = asyncio.create_task(self._keep(mail))
        try:
            await self._work(mail)
        finally:
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)

    async def _claim(self) -> list[Message]:
        """All that waits, in the inbox and in the rooms; one's own posts need no answer."""
        agent = self._worker.agent
        rooms = [places.room_of(team) for team in self._directory.teams_of(agent)]
        claiming = asyncio.ensure_future(
            self._room.claim(
                places.inbox(agent),
                *rooms,
                limit=None,
                wait=WAIT_S,
                lease=LANE_S,
                subscription=agent if rooms else None,
                worker=self._holder,
            )
        )
        stopped = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait({claiming, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not claiming.done():
            claiming.cancel()
            await asyncio.gather(claiming, return_exceptions=True)
            return []
        mail, own = [], []
        for message in claiming.result():
            (own if message.subscription and message.from_agent == agent else mail).append(message)
        if own:
            done = tuple(c.Complete(**outcomes.held(message, agent)) for message in own)
            await self._room.run(c.Unit(commands=done, actor=agent))
        return mail

    async def _keep(self, mail: list[Message]) -> None:
        """The lane and every claim, until the last is settled; one that is lost is found when it is used."""
        waiting = {message.id: message for message in mail}
        while waiting:
            await asyncio.sleep(LANE_S / 3)
            with contextlib.suppress(PostroomError):
                await self._lead(LANE_S)
            for message in list(waiting.values()):
                try:
                    extend = c.Extend(lease_s=LANE_S, **outcomes.held(message, self._worker.agent))
                    await self._room.run(extend)
                except ClaimLost:
                    del waiting[message.id]
                except PostroomError as error:
                    log.error("a lease of @%s was not extended: %s", self._worker.agent, error)

    async def _work(self, mail: list[Message]) -> None:
        for batch in group(mail):
            if self._stopping.is_set():
                await self._give_back(batch)
                continue
            try:
                await self._serve(batch)
            except ClaimLost as error:
                log.warning("%s", error)
            except asyncio.CancelledError:
                await self._give_back(batch)
                raise

    async def _give_back(self, batch: Batch) -> None:
        for message in batch.messages:
            with contextlib.suppress(PostroomError):
                await self._room.run(c.Release(**outcomes.held(message, self._worker.agent)))

    async def _serve(self, batch: Batch) -> None:
        agent = self._worker.agent
        async with self._turns:
            turn = await self._take_turn(batch)
        if isinstance(turn.verdict, Finished):
            commands = outcomes.finished(batch, agent, turn, turn.verdict.text, self._directory, self._rules)
        else:
            commands = outcomes.failed(batch, agent, turn, turn.verdict, self._rules, self._clock.now())
        commands += self._sessions.after(batch.primary, agent, turn, forget=_outgrown(turn))
        await self._room.run(c.Unit(commands=tuple(commands), actor=agent))

    async def _take_turn(self, batch: Batch) -> Turn:
        worker, primary = self._worker, batch.primary
        turn_id = uuid.uuid4().hex
        sessions = await self._sessions.of(primary, worker.agent)
        first = self._registry.get(worker.choices[0].provider).name
        worker.workspace.mkdir(parents=True, exist_ok=True)
        request = TurnRequest(
            agent_id=worker.agent,
            prompt=batch.prompt,
            workspace=worker.workspace,
            turn_id=turn_id,
            system_prompt=worker.system_prompt(),
            session_id=sessions.get(first),
            limits=worker.limits,
        )
        await self._note(batch.primary, "turn.started", turn_id, {"agent": worker.agent})

        async def tell(event: TurnEvent) -> None:
            if isinstance(event, TextChunk):
                await self._note(
                    primary, "turn.progress", turn_id, {"agent": worker.agent, "text": event.text}
                )
            elif isinstance(event, ToolUse):
                data = {"agent": worker.agent, "tool": event.name, "state": event.state}
                await self._note(primary, "turn.tool", turn_id, data)

        stream = self._registry.run(worker.choices, request, sessions)
        return await take_turn(turn_id, stream, self._clock.now, tell)

    async def _note(self, about: Message, kind: str, turn_id: str, data: dict[str, Any]) -> None:
        record = c.AddRecord(
            kind=kind,
            key=turn_id,
            data=data,
            message_id=about.id,
            correlation_id=about.correlation_id,
            actor=self._worker.agent,
        )
        await self._room.run(record)


def _outgrown(turn: Turn) -> bool:
    return isinstance(turn.verdict, Failed) and turn.verdict.kind is ErrorKind.CONTEXT_TOO_LONG
