"""An office with a Telegram channel against the fake Telegram: real room, real lanes, a puppet as agent."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import postroom
from postroom import Message, Room
from postroom.channels.pauses import Sleep
from postroom.channels.runner import ChannelRunner, ChannelSetup
from postroom.channels.telegram import KIND
from postroom.clock import SystemClock
from postroom.office.office import Office
from postroom.office.pairing import Pairings
from postroom.providers.protocol import TurnRequest
from postroom.testing import FakeTelegram, Person
from tests.acceptance.office import Puppet, Staffed, opened, until

ANN = Person("1001", "Ann Archer", "ann")
BOB = Person("1002", "Bob")


class TelegramOffice:
    def __init__(
        self, staffed: Staffed, runner: ChannelRunner, telegram: FakeTelegram, puppet: Puppet
    ) -> None:
        self.room: Room = staffed.room
        self.office: Office = staffed.office
        self.folder: Path = staffed.folder
        self.runner = runner
        self.telegram = telegram
        self.puppet = puppet

    @property
    def asked(self) -> list[str]:
        return [request.prompt for request in self.puppet.asked]

    async def pair(self, *people: Person) -> None:
        pairings = Pairings(self.room, SystemClock())
        for person in people:
            await pairings.admit("telegram", person.id, person.name)
            code = next(p.code for p in await pairings.waiting() if p.sender_id == person.id)
            await pairings.approve(code)

    async def messages(self, queue: str) -> list[Message]:
        page = await self.room.messages(scope="office", limit=1000)
        return [message for message in page.messages if message.queue == queue]

    async def ended(self, queue: str, count: int) -> list[Message]:
        """The first so many messages of a queue that have ended, dead letters among them."""
        found: list[Message] = []

        async def there() -> bool:
            page = await self.room.messages(scope="office", limit=1000)
            wanted = (queue, f"office/{queue}")
            found[:] = [
                m for m in page.messages if m.finished_at and (m.queue == queue or m.origin_queue in wanted)
            ]
            return len(found) >= count

        await until(there)
        return found


def echo(request: TurnRequest) -> str:
    return f"echo: {request.prompt}"


@asynccontextmanager
async def open_office(
    folder: Path,
    telegram: FakeTelegram,
    act: Callable[[TurnRequest], Any] = echo,
    *,
    sleep: Sleep | None = None,
    max_age_s: float = 24 * 3600.0,
    options: dict[str, Any] | None = None,
    **changes: Any,
) -> AsyncIterator[TelegramOffice]:
    puppet = Puppet(act)
    agents = {"lead": {"name": "Lead", "provider": "puppet", "model": ""}}
    url = f"sqlite:///{folder / 'room.db'}"
    async with (
        postroom.open(url, durability="relaxed") as room,
        opened(room, folder, puppets={"puppet": puppet}, agents=agents, teams={}, **changes) as staffed,
    ):
        settings = {"bot_token": telegram.token, "base_url": telegram.url, **(options or {})}
        channel = KIND.build("telegram", settings)
        setup = ChannelSetup(
            admit=Pairings(room, SystemClock()).admit,
            take=staffed.office.take_in,
            files=staffed.office.files,
            max_age_s=max_age_s,
        )
        runner = ChannelRunner(
            room, "telegram", channel, setup, SystemClock(), sleep=sleep or telegram.clock.sleep
        )
        running = asyncio.create_task(runner.run())
        try:
            await until(
                lambda: runner.status.receiving or runner.status.problem is not None or running.done()
            )
            yield TelegramOffice(staffed, runner, telegram, puppet)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
