"""The room of a team in the terminal: what is said scrolls by, and what one writes is posted."""

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from postroom.terminal.cli.connection import Unreachable
from postroom.terminal.cli.output import clean
from postroom.terminal.cli.store_access import CommandContext

if TYPE_CHECKING:
    from postroom.services.office import OfficeServices
    from postroom.services.rooms import RoomEntry

SHOWN = 50
LOOK_S = 1.0
LEAVE = frozenset({"q", "quit", "exit"})


def line(post: "RoomEntry") -> str:
    who = "you" if post.author == "user" else f"@{post.author}"
    time = datetime.fromtimestamp(post.created_at / 1000, UTC).astimezone().strftime("%H:%M")
    return f"[{time}] {clean(who)}: {clean(post.text, lines=True)}"


async def newest(
    at: CommandContext, office: "OfficeServices", team: str, limit: int = SHOWN
) -> "list[RoomEntry]":
    """The last posts, oldest first."""
    return (await office.rooms.read(at.caller, team, limit=limit))[::-1]


async def stay(at: CommandContext, office: "OfficeServices", team: str) -> None:
    """Until q on an empty line, or Ctrl-D."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.patch_stdout import patch_stdout

    posts = await newest(at, office, team)
    at.out.say(f"#{team}. Write and press Enter; q leaves.", style="dim")
    for post in posts:
        at.out.say(line(post))
    last = max((post.number for post in posts), default=0)
    session: PromptSession[str] = PromptSession()
    with patch_stdout():
        reading = asyncio.create_task(_read(at, office, team, last))
        try:
            while True:
                try:
                    text = (await session.prompt_async(f"#{team} > ")).strip()
                except (EOFError, KeyboardInterrupt):
                    return
                if text.lower() in LEAVE:
                    return
                if text:
                    await office.rooms.write(at.caller, team, text)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _read(at: CommandContext, office: "OfficeServices", team: str, last: int) -> None:
    while True:
        with contextlib.suppress(Unreachable):
            if last:
                posts = await office.rooms.read(at.caller, team, since=last, limit=SHOWN)
            else:
                posts = await newest(at, office, team)
            for post in posts:
                print(line(post))
                last = max(last, post.number)
        await asyncio.sleep(LOOK_S)
