"""The room of a team in the terminal: what is said scrolls by, and what one writes is posted."""

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import Any

from postroom.terminal.cli.connection import OfficeClient, Unreachable
from postroom.terminal.cli.office import part
from postroom.terminal.cli.output import Output, clean

SHOWN = 50
LOOK_S = 1.0
LEAVE = frozenset({"q", "quit", "exit"})


def line(row: dict[str, Any]) -> str:
    who = "you" if row["from_agent"] == "user" else f"@{row['from_agent']}"
    time = datetime.fromtimestamp(row["created_at"] / 1000, UTC).astimezone().strftime("%H:%M")
    return f"[{time}] {clean(who)}: {clean(row['message'], lines=True)}"


async def newest(office: OfficeClient, team: str, limit: int = SHOWN) -> list[dict[str, Any]]:
    """The last rows, oldest first."""
    found = await office.get(f"/api/chatroom/{part(team)}", limit=limit)
    return found[::-1]


async def stay(office: OfficeClient, team: str, out: Output) -> None:
    """Until q on an empty line, or Ctrl-D."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.patch_stdout import patch_stdout

    rows = await newest(office, team)
    out.say(f"#{team}. Write and press Enter; q leaves.", style="dim")
    for row in rows:
        out.say(line(row))
    last = max((row["id"] for row in rows), default=0)
    session: PromptSession[str] = PromptSession()
    with patch_stdout():
        reading = asyncio.create_task(_read(office, team, last, out))
        try:
            while True:
                try:
                    text = (await session.prompt_async(f"#{team} > ")).strip()
                except (EOFError, KeyboardInterrupt):
                    return
                if text.lower() in LEAVE:
                    return
                if text:
                    await office.post(f"/api/chatroom/{part(team)}", {"message": text})
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _read(office: OfficeClient, team: str, last: int, out: Output) -> None:
    path = f"/api/chatroom/{part(team)}"
    while True:
        with contextlib.suppress(Unreachable):
            if last:
                rows = await office.get(path, since=last, limit=SHOWN)
            else:
                rows = await newest(office, team)
            for row in rows:
                print(line(row))
                last = max(last, row["id"])
        await asyncio.sleep(LOOK_S)
