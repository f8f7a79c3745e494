"""Heartbeats: every agent is asked from time to time how things are, and never again before it has answered.

Nobody waits for the answer. How far each agent has come is a document, so of many processes one asks.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from postroom.clock import SECOND, Clock, iso, micros
from postroom.errors import DocumentChanged, PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage
from postroom.kernel.states import OPEN
from postroom.office import queues
from postroom.office.agent_hosts import AgentHosts
from postroom.office.documents import everything
from postroom.office.intake.routing import Via
from postroom.office.ports import RoomPort
from postroom.office.workspaces import Workspace
from postroom.settings.model import Settings

log = logging.getLogger("postroom.heartbeats")

HEARTBEAT = "heartbeat"
CHANNEL = "heartbeat"
SENDER = "System"
FILE = "heartbeat.md"
FILE_BYTES = 64 * 1024
LOOK_S = 5.0
QUESTION = "A regular check: is anything waiting for you, late or stuck? One or two sentences are enough."


class HeartbeatState(msgspec.Struct, frozen=True):
    """An agent that is asked, how often, and what."""

    agent: str
    every: int
    text: Callable[[], str]


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """How far an agent has come. `key` is that of the last question."""

    after: int
    key: str | None = None
    sent_at: int | None = None
    sent: int = 0
    passed_over: int = 0


def pulses(settings: Settings, home: Path | None = None) -> list[HeartbeatState]:
    """The agents whose heartbeat is on."""
    found: list[HeartbeatState] = []
    for agent in settings.present_agents():
        if seconds := settings.heartbeat_s(agent):
            workspace = Workspace.of(settings, agent, home)
            found.append(
                HeartbeatState(agent, micros(seconds), lambda workspace=workspace: question(workspace))
            )
    return found


def question(workspace: Workspace) -> str:
    """What the agent's own file asks, or the usual question. A link out of the workspace is not followed."""
    try:
        text = workspace.read_text(FILE, max_bytes=FILE_BYTES).strip()
    except PostroomError as error:
        log.warning("%s", error)
        return QUESTION
    return text or QUESTION


class Heartbeats:
    def __init__(
        self,
        room: RoomPort,
        found: Callable[[], Sequence[HeartbeatState]],
        clock: Clock,
        host: str = "",
    ) -> None:
        """`found` gives the agents that are asked; it is called anew each round, since settings change. What
        an agent is asked lies in its workspace, so with a `host` those that work there are asked."""
        self._room = room
        self._clock = clock
        self._leader = room.leader(f"heartbeats/{host}" if host else "heartbeats")
        self._hosts = AgentHosts(room, host)
        self._pulses = found

    async def run(self) -> None:
        await self._leader.run_rounds(self._work)

    async def round(self) -> float:
        return await self._leader.round(self._work)

    def stop(self) -> None:
        self._leader.stop()

    async def _work(self) -> float:
        asked = [pulse for pulse in self._pulses() if await self._hosts.is_here(pulse.agent)]
        if not asked:
            return LOOK_S
        return min(await asyncio.gather(*(self._beat(pulse) for pulse in asked)))

    async def last_sent(self) -> dict[str, int]:
        """When each agent was last asked."""
        found: dict[str, int] = {}
        async for document in everything(self._room, HEARTBEAT):
            beat = msgspec.convert(document.data, Beat)
            if beat.sent_at is not None:
                found[document.key] = beat.sent_at
        return found

    async def _beat(self, pulse: HeartbeatState) -> float:
        """Ask, if it is time; the seconds until it is time again."""
        try:
            return await self._ask(pulse)
        except StoreClosed:
            raise
        except DocumentChanged:
            return 0.0
        except PostroomError as error:
            log.error("@%s was not asked: %s", pulse.agent, error)
            return LOOK_S

    async def _ask(self, pulse: HeartbeatState) -> float:
        now = self._clock.now()
        document = await self._room.document(HEARTBEAT, pulse.agent)
        version = document.version if document else 0
        beat = msgspec.convert(document.data, Beat) if document else None
        if beat is None or beat.after > now:
            # The first question comes after one interval; so does the next after the clock was put back.
            beat = msgspec.structs.replace(beat, after=now) if beat else Beat(after=now)
            await self._room.run(self._gone_on(pulse, beat, version))
        elif now - beat.after >= pulse.every:
            slot = now - (now - beat.after) % pulse.every
            if await self._unanswered(pulse, beat):
                beat = msgspec.structs.replace(beat, after=slot, passed_over=beat.passed_over + 1)
                await self._room.run(self._gone_on(pulse, beat, version))
            else:
                beat = await self._send(pulse, beat, version, slot, now)
        return max(0.0, (beat.after + pulse.every - now) / SECOND)

    async def _unanswered(self, pulse: HeartbeatState, beat: Beat) -> bool:
        if beat.key is None:
            return False
        page = await self._room.messages(scope=queues.SCOPE, correlation_id=beat.key, limit=1)
        first = next(iter(page.messages), None)
        return first is not None and first.idempotency_key == beat.key and first.state in OPEN

    async def _send(self, pulse: HeartbeatState, beat: Beat, version: int, slot: int, now: int) -> Beat:
        key = f"heartbeat/{pulse.agent}/{iso(slot)}"
        beat = Beat(after=slot, key=key, sent_at=now, sent=beat.sent + 1, passed_over=beat.passed_over)
        message = NewMessage(
            body={"text": pulse.text(), "team": None, "via": Via.GIVEN.value},
            message_type="office.mail",
            channel=CHANNEL,
            sender=SENDER,
            agent=pulse.agent,
            idempotency_key=key,
            correlation_id=key,
            source_type="heartbeat",
            source_id=pulse.agent,
        )
        queue, actor = queues.inbox(pulse.agent), self._room.actor
        commands = (
            self._gone_on(pulse, beat, version),
            c.Publish(queue=queue, messages=[message], actor=actor),
        )
        await self._room.run(c.Unit(commands=commands, actor=actor))
        return beat

    def _gone_on(self, pulse: HeartbeatState, beat: Beat, version: int) -> c.Command:
        data = msgspec.to_builtins(beat)
        return c.PutDocument(
            kind=HEARTBEAT, key=pulse.agent, data=data, expect=version, actor=self._room.actor, history=False
        )
