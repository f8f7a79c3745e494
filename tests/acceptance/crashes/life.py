"""One life of an office: it takes the person's message, works until all is done, or is killed at a step.

A step is whatever changes something: a command to the room, a claim, an event of a provider. The office knows
nothing of it: room and providers are wrapped from outside.
"""

import os
import signal
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import postroom
from postroom import Room
from postroom.kernel import commands as c
from postroom.kernel.states import OPEN
from postroom.office.intake.intake import Incoming
from postroom.office.office import Office
from postroom.providers.protocol import ErrorKind, Provider, TurnRequest, TurnStream
from postroom.providers.registry import ProviderSettings, Registry
from postroom.providers.script_rules import Script, ScriptRule
from postroom.runtime.leader import Leader
from postroom.runtime.ledger_reader import LedgerReader
from postroom.settings.model import parse
from tests.acceptance.office import until

AGENTS = ("lead", "coder", "reviewer")
WORDS = "@dev the login is broken"
RULES = (
    ScriptRule(match="Chat room(?!.*------)", reply="noted"),
    ScriptRule(agent="lead", match="finished", reply="All is well."),
    ScriptRule(
        agent="lead",
        match="login",
        reply="I ask both. [#dev: we begin]",
        hand_off={"coder": "fix it", "reviewer": "read it"},
    ),
    ScriptRule(
        agent="coder",
        match="fix it",
        fail=ErrorKind.CRASHED,
        times=1,
        chunks=2,
        reply="Fixed.",
        hand_off={"lead": "finished"},
    ),
    ScriptRule(agent="coder", match="look at", reply="Looked."),
    ScriptRule(agent="reviewer", match="read it", reply="Read.", hand_off={"coder": "look at line 3"}),
)


class Steps:
    """Counts, and dies before the step it is told to."""

    def __init__(self, fatal: int | None) -> None:
        self.taken = 0
        self._fatal = fatal

    def take(self) -> None:
        self.taken += 1
        if self.taken == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)


class SteppedRoom:
    """The room, with a step before every change; all questions go through as they are."""

    def __init__(self, room: Room, steps: Steps) -> None:
        self._room = room
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._room, name)

    def run(self, command: c.Command) -> Any:
        self._steps.take()
        return self._room.run(command)

    async def claim(self, *queues: str, **options: Any) -> Any:
        found = await self._room.claim(*queues, **options)
        if found:
            self._steps.take()
        return found

    def ledger_reader(self, name: str = "", **options: Any) -> LedgerReader:
        return LedgerReader(cast("Room", self), name, **options)

    def leader(self, name: str, **options: Any) -> Leader:
        return Leader(cast("Room", self), name, self._room._core.clock, **options)


class CarelessRoom(SteppedRoom):
    """Does what belongs together one by one. An office that works like this must be found out."""

    def run(self, command: c.Command) -> Any:
        if isinstance(command, c.Unit):
            return self._one_by_one(command)
        return super().run(command)

    async def _one_by_one(self, unit: c.Unit) -> list[Any]:
        return [await SteppedRoom.run(self, command) for command in unit.commands]


class SteppedProvider:
    def __init__(self, provider: Provider, steps: Steps) -> None:
        self.name = provider.name
        self._provider = provider
        self._steps = steps

    async def run(self, request: TurnRequest) -> TurnStream:
        async with aclosing(self._provider.run(request)) as events:
            async for event in events:
                self._steps.take()
                yield event


class SteppedRegistry(Registry):
    def __init__(self, settings: ProviderSettings, steps: Steps, parent: dict[str, str]) -> None:
        super().__init__(settings, parent=parent)
        self._steps = steps

    def get(self, provider_id: str) -> Provider:
        return SteppedProvider(super().get(provider_id), self._steps)


def settings_of(folder: Path, kind: str) -> dict[str, Any]:
    provider = "anthropic" if kind == "programs" else "script"
    return {
        "workspace": {"path": str(folder / "work")},
        "agents": {name: {"provider": provider, "model": ""} for name in AGENTS},
        "teams": {
            "dev": {
                "agents": list(AGENTS),
                "leader_agent": "lead",
                "replies": "combined" if kind == "combined" else "each",
            }
        },
        "guards": {"attempts": 20, "grace_s": 0.5},
        "limits": {"lease_s": 0.6},
        # Many turns take the same words here, which a guard would stop.
        "sessions": {"scope": "agent"},
    }


def incoming(kind: str) -> Incoming:
    words = "[@lead: one] [@coder: two] [@reviewer: three]" if kind == "programs" else WORDS
    return Incoming(channel="web", sender="Ann", sender_id="ann", text=words, platform_id="1")


async def live(folder: Path, kind: str, fatal: int | None, parent: dict[str, str]) -> int:
    """The number of steps it took, if it was not killed before."""
    steps = Steps(fatal)
    providers = ProviderSettings(script=Script(rules=RULES, pace=0.0), pass_variables=("FAKE", "FAKE_STATE"))
    registry = SteppedRegistry(providers, steps, parent)
    async with postroom.open(str(folder / "room.db"), durability="relaxed", actor=f"life-{fatal}") as room:
        stepped: Any = (CarelessRoom if kind == "careless" else SteppedRoom)(room, steps)
        office = Office(stepped, parse(settings_of(folder, kind)), registry, folder=folder / "home")
        await office.furnish()
        for agent in AGENTS:
            await room.update_queue(f"office/inbox/{agent}", backoff_base_s=0.01, backoff_cap_s=0.01)
        # The platform sends it until it is accepted, and maybe once more.
        await office.take_in(incoming(kind))
        office.start()
        await until(lambda: at_rest(room), within=120)
        await office.stop(grace=5)
    return steps.taken


async def at_rest(room: Room) -> bool:
    page = await room.messages(scope="office", limit=1000, deliveries=True)
    if any(m.state in OPEN for m in page.messages if not m.queue.startswith("outbox/")):
        return False
    positions = {position.name: position.seq for position in await room.positions()}
    head = await room.head()
    return positions.get("office-clerk", 0) >= head.seq
