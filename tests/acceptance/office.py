"""A small office for acceptance tests: real room, real lanes, the script provider."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import postroom
from postroom import Message, Room, State
from postroom.office.intake import Incoming, Taken
from postroom.office.offices import Office
from postroom.providers.registry import ProviderSettings, Registry
from postroom.providers.script_rules import Rule, Script
from postroom.settings.model import parse

AGENTS = ("lead", "coder", "reviewer")


class Staffed:
    def __init__(self, room: Room, office: Office) -> None:
        self.room = room
        self.office = office

    async def write(self, text: str, **fields: Any) -> Taken:
        mail = {"channel": "web", "sender": "Ann", "sender_id": "ann", **fields}
        return await self.office.take_in(Incoming(text=text, **mail))

    async def replies(self, count: int, channel: str = "web", within: float = 10.0) -> list[Message]:
        """The first so many replies in a channel's outbox, once they are there."""
        async with asyncio.timeout(within):
            while True:
                page = await self.room.messages(scope="office", limit=500)
                found = [m for m in page.messages if m.queue == f"outbox/{channel}"]
                if len(found) >= count:
                    return found
                await asyncio.sleep(0.01)

    async def quiet(self, within: float = 10.0) -> list[Message]:
        """Everything in the office, once no inbox or room has open mail."""
        async with asyncio.timeout(within):
            while True:
                page = await self.room.messages(scope="office", limit=1000, deliveries=True)
                mail = [m for m in page.messages if not m.queue.startswith("outbox/")]
                if all(m.state not in (State.PENDING, State.CLAIMED, State.DELAYED) for m in mail):
                    return list(page.messages)
                await asyncio.sleep(0.01)


@asynccontextmanager
async def staffed(tmp_path: Path, *rules: Rule, **changes: Any) -> AsyncIterator[Staffed]:
    document: dict[str, Any] = {
        "workspace": {"path": str(tmp_path / "work")},
        "agents": {name: {"name": name.title(), "provider": "script", "model": ""} for name in AGENTS},
        "teams": {"dev": {"name": "Dev", "agents": list(AGENTS), "leader_agent": "lead"}},
        **changes,
    }
    registry = Registry(ProviderSettings(script=Script(rules=rules, pace=0.01)))
    async with postroom.open(str(tmp_path / "room.db")) as room:
        office = Office(room, parse(document), registry)
        await office.furnish()
        office.start()
        try:
            yield Staffed(room, office)
        finally:
            await office.stop(grace=2)


def text(message: Message) -> str:
    return message.body["text"]


def signed(messages: list[Message]) -> dict[str, str]:
    """Replies by the agent that signed them."""
    return {message.agent or "": text(message) for message in messages}
