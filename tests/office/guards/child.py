"""Processes of these tests.

`spend SOCKET NAME`: reserves and settles a dollar until there are none left; prints how many it got.
`lane SOCKET AGENT`: runs the lane of one agent in the room behind the socket, until it is killed.
`office FOLDER`: owns the room in a folder, runs an office in it, and prints every event, until it is killed.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, cast

from tests.office.guards.house import PING_PONG, office_of
from tests.office.guards.remote import RemoteRoom

import postroom
from postroom.errors import LimitReached
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import Charge
from postroom.office.intake.intake import Incoming
from postroom.providers.script_rules import ScriptRule

DOLLAR = 1_000_000


async def spend(path: Path, name: str) -> None:
    room, got = RemoteRoom(path, name), 0
    for number in range(1000):
        holder = f"{name} {number}"
        charge = Charge("purse", DOLLAR, 20 * DOLLAR)
        try:
            await room.run(c.Reserve(holder=holder, charges=(charge,), seconds=600))
        except LimitReached as error:
            if error.data["reserved"]:
                continue
            break
        await room.run(c.Settle(holder=holder, charges=(charge,)))
        got += 1
    print(got, flush=True)


async def lane(path: Path, agent: str) -> None:
    settings = json.loads(os.environ["OFFICE"])
    room = cast(Any, RemoteRoom(path, agent))
    office, _ = office_of(room, path.parent / agent, *PING_PONG, **settings)
    [own] = [one for one in office._lanes if one.agent == agent]
    await own.run()


async def office(folder: Path) -> None:
    """The first life writes a message; the others go on with what is there."""
    settings = json.loads(os.environ["OFFICE"])
    slow = float(os.environ.get("SLOW", "0"))
    rules = [ScriptRule(match="slow", reply="done", seconds=slow), *PING_PONG]
    async with postroom.open(str(folder / "room.db"), housekeeping=True) as room:
        made, _ = office_of(room, folder, *rules, pace=1.0, **settings)
        await made.furnish()
        text = os.environ.get("WRITE")
        if text:
            mail = Incoming(channel="web", sender="Ann", sender_id="ann", text=text, platform_id="1")
            await made.take_in(mail)
        made.start()
        async for event in room.events(follow=True):
            os.write(1, f"{event.type}\n".encode())


if __name__ == "__main__":
    role, place, *rest = sys.argv[1:]
    work = {"spend": spend, "lane": lane, "office": office}[role]
    asyncio.run(work(Path(place), *rest))
