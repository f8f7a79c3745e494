"""`postroom team visualize` and `postroom chatroom`: the office, live in the terminal."""

import asyncio
import sys
import time
from dataclasses import asdict
from typing import Annotated, Any

import typer

from postroom.terminal.cli.command import command
from postroom.terminal.cli.connection import OfficeClient, connected
from postroom.terminal.cli.office import part
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.store_access import CommandContext

TeamId = Annotated[str, argument("TEAM", "The team's id.")]


def register(root: typer.Typer, panel: str) -> None:
    command(
        root,
        "chatroom",
        panel=panel,
        store=False,
        examples=["postroom chatroom dev", 'postroom chatroom dev --say "how far are you?"'],
    )(chatroom)


def _watched() -> bool:
    return sys.stdout.isatty() and sys.stdin.isatty()


def visualize(
    at: CommandContext, team: Annotated[str | None, argument("TEAM", "Only this team. Default all.")] = None
) -> None:
    """Watch the agents at work: cards, hand-offs, what goes on. q leaves.

    Where the output is no terminal, or Postroom does not run, it shows once how things are.
    """
    asyncio.run(_visualize(at, team.lower() if team else None))


async def _visualize(at: CommandContext, team: str | None) -> None:
    from postroom.terminal.tui import live, render
    from postroom.terminal.tui.floor import Floor

    async with connected() as office:
        agents, teams = await office.get("/api/agents"), await office.get("/api/teams")
        if team is not None and team not in teams:
            await office.get(f"/api/chatroom/{part(team)}")  # says in its own words that there is none
        floor = Floor.of(agents, teams, team, time.time())
        await live.look(office, floor)
        for one in await office.get("/api/queue/processing"):
            floor.see("agent:invoke", {"agentId": one["agent"]}, time.time())
        floor.activity.clear()
        if office.live and _watched() and not at.out.as_json:
            await live.watch(office, floor, at.out)
            return
    document: dict[str, Any] = {
        "agents": {
            name: {**asdict(card), "doing": card.doing.name.lower()} for name, card in floor.cards.items()
        },
        "running": floor.online,
        "waiting": floor.waiting,
        "dead": floor.dead,
    }
    at.out.show(document, render.frame(floor, time.time(), live=False))


def chatroom(
    at: CommandContext,
    team: TeamId,
    say: Annotated[str | None, option("TEXT", "Post this, and end.", "--say")] = None,
    limit: Annotated[int, option("N", "So many of the newest lines. Default 50.", "-n", "--limit")] = 50,
) -> None:
    """Sit in the room of a team: read what is said, and write. q leaves.

    Where the output is no terminal, or Postroom does not run, it shows the newest lines and ends.
    """
    asyncio.run(_chatroom(at, team.lower(), say, limit))


async def _chatroom(at: CommandContext, team: str, say: str | None, limit: int) -> None:
    from postroom.terminal.tui import chatroom as room

    async with connected() as office:
        if say is not None:
            done = await office.post(f"/api/chatroom/{part(team)}", {"message": say})
            later = "" if office.live else " Postroom does not run; agents read it when it starts."
            at.out.show(done, f"Posted to #{team}.{later}")
            return
        if office.live and _watched() and not at.out.as_json:
            await room.stay(office, team, at.out)
            return
        await _once(at, office, team, limit)


async def _once(at: CommandContext, office: OfficeClient, team: str, limit: int) -> None:
    from postroom.terminal.tui import chatroom as room

    rows = await room.newest(office, team, limit)
    at.out.show(rows, *([room.line(row) for row in rows] or [f"Nothing was said in #{team} yet."]))
