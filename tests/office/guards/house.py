"""An office whose turns cost money, for tests of guards: real room, real lanes, a provider with a price."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

import postroom
from postroom import Message, Room, State
from postroom.clock import Clock
from postroom.kernel.budgets.model import Budget
from postroom.office.guards import budgets
from postroom.office.intake.intake import Incoming, IntakeResult
from postroom.office.office import Office
from postroom.providers.protocol import TurnRequest, TurnStream, Usage
from postroom.providers.registry import ProviderSettings, Registry
from postroom.providers.script import ScriptProvider
from postroom.providers.script_rules import Script, ScriptRule
from postroom.settings.model import parse

AGENTS = ("lead", "coder", "reviewer")
OPEN = (State.PENDING, State.CLAIMED, State.DELAYED)
Price = float | None | Callable[[TurnRequest], float | None]


class Paid:
    """The script provider, at a price: None is one that nobody knows."""

    name = "paid"

    def __init__(self, script: Script, price: Price) -> None:
        self._script = ScriptProvider(script, name=self.name)
        self._price = price
        self.turns = 0

    async def run(self, request: TurnRequest) -> TurnStream:
        self.turns += 1
        price = self._price(request) if callable(self._price) else self._price
        async for event in self._script.run(request):
            if isinstance(event, Usage):
                event = msgspec.structs.replace(event, cost_usd=price, model="mystery-9")
            yield event


class Guarded:
    def __init__(self, room: Room, office: Office, paid: Paid) -> None:
        self.room = room
        self.office = office
        self.paid = paid

    async def write(self, text: str, **fields: Any) -> IntakeResult:
        mail = {"channel": "web", "sender": "Ann", "sender_id": "ann", **fields}
        return await self.office.take_in(Incoming(text=text, **mail))

    async def replies(self, count: int) -> list[Message]:
        def there(found: list[Message]) -> bool:
            return sum(m.message_type == "office.reply" for m in found) >= count

        return [m for m in await self.until(there) if m.message_type == "office.reply"]

    async def quiet(self, within: float = 60.0) -> None:
        """Until no mail of agents is open."""
        await self.held(0, within)

    async def account(self, name: str) -> Budget:
        return (await self.room.accounts(name))[name]

    async def spent(self, talk: str) -> int:
        return (await self.account(budgets.conversation(talk))).spent

    async def all(self) -> list[Message]:
        found: list[Message] = []
        cursor: str | None = None
        while True:
            page = await self.room.messages(scope="office", limit=1000, deliveries=True, cursor=cursor)
            found += page.messages
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def mail(self) -> list[Message]:
        return [m for m in await self.all() if not m.queue.startswith("outbox/")]

    async def notices(self) -> list[Message]:
        return [m for m in await self.all() if m.message_type == "office.notice"]

    async def until(self, what: Callable[[list[Message]], bool], within: float = 60.0) -> list[Message]:
        async with asyncio.timeout(within):
            while True:
                found = await self.all()
                if what(found):
                    return found
                await asyncio.sleep(0.02)

    async def held(self, count: int = 1, within: float = 60.0) -> list[Message]:
        """Once nothing of the agents' mail is open but this many, which wait."""

        def settled(found: list[Message]) -> bool:
            mail = [m for m in found if not m.queue.startswith("outbox/") and m.state in OPEN]
            return len(mail) == count and all(m.state is State.DELAYED for m in mail)

        found = await self.until(settled, within)
        return [m for m in found if m.state is State.DELAYED]


def office_of(
    room: Room,
    folder: Path,
    *rules: ScriptRule,
    price: Price = 0.01,
    provider: str = "paid",
    clock: Clock | None = None,
    pace: float = 0.0,
    **changes: Any,
) -> tuple[Office, Paid]:
    document: dict[str, Any] = {
        "workspace": {"path": str(folder / "work")},
        "agents": {name: {"name": name.title(), "provider": provider, "model": ""} for name in AGENTS},
        "teams": {"dev": {"name": "Dev", "agents": list(AGENTS), "leader_agent": "lead"}},
        "schedules": {"zone": "UTC"},
        "monitoring": {"heartbeat_interval": 0},
        **changes,
    }
    script = Script(rules=rules, pace=pace)
    registry, paid = Registry(ProviderSettings(script=script)), Paid(script, price)
    registry._makers["paid"] = lambda: paid
    office = Office(room, parse(document), registry, folder=folder / "home", clock=clock)
    return office, paid


@asynccontextmanager
async def guarded(folder: Path, *rules: ScriptRule, **changes: Any) -> AsyncIterator[Guarded]:
    options = {"clock": changes["clock"]} if changes.get("clock") else {}
    async with postroom.open(str(folder / "room.db"), durability="relaxed", **options) as room:
        office, paid = office_of(room, folder, *rules, **changes)
        await office.furnish()
        office.start()
        try:
            yield Guarded(room, office, paid)
        finally:
            await office.stop(grace=2)


def talk_of(message: Message) -> str:
    assert message.correlation_id is not None
    return message.correlation_id


PING_PONG = (
    ScriptRule(agent="lead", reply="lead says", hand_off={"coder": "round $turn of lead"}),
    ScriptRule(agent="coder", reply="coder says", hand_off={"lead": "round $turn of coder"}),
)
