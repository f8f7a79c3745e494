"""A small office for acceptance tests: real room, real lanes, the script provider."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import postroom
from postroom import Message, Room, State
from postroom.clock import Clock
from postroom.office import ledger_follower
from postroom.office.intake.intake import Incoming, IntakeResult
from postroom.office.object_files import open_files
from postroom.office.office import Office
from postroom.providers.protocol import Finished, Provider, SessionStarted, TurnRequest, TurnStream
from postroom.providers.registry import ProviderSettings, Registry
from postroom.providers.script_rules import Script, ScriptRule
from postroom.settings.model import parse

AGENTS = ("lead", "coder", "reviewer")


class Puppet:
    """A provider that does what a function says, and remembers what it was asked. The function may return
    the answer or a list of events, at once or later."""

    def __init__(self, act: Callable[[TurnRequest], Any], name: str = "puppet") -> None:
        self.name = name
        self.wants_history = True
        self.takes_more = False
        self.asked: list[TurnRequest] = []
        self.working = 0
        self.most_working = 0
        self._act = act

    async def run(self, request: TurnRequest) -> TurnStream:
        self.asked.append(request)
        self.working += 1
        self.most_working = max(self.working, self.most_working)
        try:
            session = request.session_id or f"{self.name}-{len(self.asked)}"
            yield SessionStarted(session_id=session, provider=self.name)
            told = self._act(request)
            told = await told if inspect.isawaitable(told) else told
            for event in [Finished(text=told)] if isinstance(told, str) else told:
                yield event
        finally:
            self.working -= 1


class Gate:
    """A turn that goes on until it is let go."""

    def __init__(self, answer: str = "done") -> None:
        self.open = asyncio.Event()
        self.puppet = Puppet(self._act)
        self._answer = answer

    async def _act(self, request: TurnRequest) -> str:
        await self.open.wait()
        return self._answer

    async def begun(self, turns: int = 1) -> None:
        await until(lambda: len(self.puppet.asked) >= turns)

    async def over(self) -> None:
        await until(lambda: not self.puppet.working)


class Cast(Registry):
    """The providers there are, and puppets besides."""

    def __init__(self, settings: ProviderSettings, puppets: Mapping[str, Provider]) -> None:
        super().__init__(settings)
        self._puppets = puppets

    def get(self, provider_id: str) -> Provider:
        return self._puppets.get(provider_id) or super().get(provider_id)


class Staffed:
    def __init__(self, room: Room, office: Office, folder: Path) -> None:
        self.room = room
        self.office = office
        self.folder = folder

    def workspace(self, agent: str) -> Path:
        path = self.folder / "work" / agent
        path.mkdir(parents=True, exist_ok=True)
        return path

    async def write(self, text: str, **fields: Any) -> IntakeResult:
        mail = {"channel": "web", "sender": "Ann", "sender_id": "ann", **fields}
        return await self.office.take_in(Incoming(text=text, **mail))

    async def replies(self, count: int, channel: str = "web", within: float = 60.0) -> list[Message]:
        """The first so many replies in a channel's outbox, once they are there."""
        async with asyncio.timeout(within):
            while True:
                page = await self.room.messages(scope="office", limit=500)
                found = [m for m in page.messages if m.queue == f"outbox/{channel}"]
                if len(found) >= count:
                    return found
                await asyncio.sleep(0.01)

    async def quiet(self, within: float = 60.0) -> list[Message]:
        """Everything in the office, once no inbox or room has open mail."""
        async with asyncio.timeout(within):
            while True:
                page = await self.room.messages(scope="office", limit=1000, deliveries=True)
                mail = [m for m in page.messages if not m.queue.startswith("outbox/")]
                if all(m.state not in (State.PENDING, State.CLAIMED, State.DELAYED) for m in mail):
                    return list(page.messages)
                await asyncio.sleep(0.01)

    async def settled(self, within: float = 60.0) -> list[Message]:
        """Everything in the office, once no mail is open and all that follows from what happened is done."""

        async def is_read() -> bool:
            return await self._read_to() >= (await self.room.head()).seq

        async with asyncio.timeout(within):
            while True:
                found = await self.quiet()
                head = (await self.room.head()).seq
                await until(is_read)
                if head == (await self.room.head()).seq:
                    return found

    async def _read_to(self) -> int:
        return {each.name: each.seq for each in await self.room.positions()}.get(ledger_follower.NAME, 0)


def document(tmp_path: Path, changes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "workspace": {"path": str(tmp_path / "work")},
        "agents": {name: {"name": name.title(), "provider": "script", "model": ""} for name in AGENTS},
        "teams": {"dev": {"name": "Dev", "agents": list(AGENTS), "leader_agent": "lead"}},
        **changes,
    }


@asynccontextmanager
async def opened(
    room: Room,
    tmp_path: Path,
    *rules: ScriptRule,
    puppets: Mapping[str, Provider] | None = None,
    pace: float = 0.01,
    start: bool = True,
    office_clock: Clock | None = None,
    host: str = "",
    **changes: Any,
) -> AsyncIterator[Staffed]:
    """An office in a room that is open already. By its own clock it knows what day it is."""
    registry = Cast(ProviderSettings(script=Script(rules=rules, pace=pace)), puppets or {})
    settings, folder = parse(document(tmp_path, changes)), tmp_path / "home"
    files = open_files(settings, folder)
    office = Office(room, settings, registry, folder=folder, clock=office_clock, host=host, files=files)
    await office.furnish()
    if start:
        office.start()
    try:
        yield Staffed(room, office, tmp_path)
    finally:
        await office.stop(grace=2)


@asynccontextmanager
async def staffed(
    tmp_path: Path, *rules: ScriptRule, clock: Clock | None = None, **options: Any
) -> AsyncIterator[Staffed]:
    """`clock` is the room's: leases, delays and time-outs go by it."""
    kept: dict[str, Any] = {"clock": clock} if clock is not None else {}
    async with (
        postroom.open(str(tmp_path / "room.db"), durability="relaxed", **kept) as room,
        opened(room, tmp_path, *rules, **options) as desk,
    ):
        yield desk


async def until(condition: Callable[[], Any], within: float = 60.0) -> None:
    """Until it holds; the condition may be a question that takes a while."""
    async with asyncio.timeout(within):
        while True:
            holds = condition()
            if await holds if inspect.isawaitable(holds) else holds:
                return
            await asyncio.sleep(0.01)


def content(path: str | Path) -> str:
    return Path(path).read_text("utf-8")


def text(message: Message) -> str:
    return message.body["text"]


def signed(messages: list[Message]) -> dict[str, str]:
    """Replies by the agent that signed them."""
    return {message.agent or "": text(message) for message in messages}
