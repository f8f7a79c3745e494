"""`postroom team visualize` and `postroom chatroom`: the office, live in the terminal."""

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.terminal.cli.command import command
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.store_access import CommandContext

if TYPE_CHECKING:
    from postroom.services.office import OfficeServices

TeamId = Annotated[str, argument("TEAM", "The team's id.")]


def register(root: typer.Typer, panel: str) -> None:
    command(
        root,
        "chatroom",
        panel=panel,
        store=False,
        examples=["postroom chatroom dev", 'postroom chatroom dev --say "how far are you?"'],
    )(chatroom)


def _is_watched() -> bool:
    return sys.stdout.isatty() and sys.stdin.isatty()


async def visualize(
    at: CommandContext, team: Annotated[str | None, argument("TEAM", "Only this team. Default all.")] = None
) -> None:
    """Watch the agents at work: cards, hand-offs, what goes on. q leaves.

    Where the output is no terminal, or Postroom does not run, it shows once how things are.
    """
    from postroom.terminal.tui import live, render
    from postroom.terminal.tui.floor import Floor

    async with at.office() as office:
        agents, teams = await office.agents.list_all(at.caller), await office.teams.list_all(at.caller)
        if team is not None:
            team = (await office.teams.get(at.caller, team)).id
        floor = Floor.of(agents, teams, team, time.time())
        await live.look(at, office, floor)
        for one in await office.workload.in_hand(at.caller):
            floor.see("agent:invoke", {"agentId": one.agent}, time.time())
        floor.activity.clear()
        if at.server_runs and _is_watched() and not at.out.as_json:
            await live.watch(at, office, floor)
            return
    document = {
        "agents": {
            name: {**asdict(card), "doing": card.doing.name.lower()} for name, card in floor.cards.items()
        },
        "running": floor.online,
        "waiting": floor.waiting,
        "dead": floor.dead,
    }
    at.out.show(document, render.frame(floor, time.time(), live=False))


async def chatroom(
    at: CommandContext,
    team: TeamId,
    say: Annotated[str | None, option("TEXT", "Post this, and end.", "--say")] = None,
    limit: Annotated[int, option("N", "So many of the newest lines. Default 50.", "-n", "--limit")] = 50,
) -> None:
    """Sit in the room of a team: read what is said, and write. q leaves.

    Where the output is no terminal, or Postroom does not run, it shows the newest lines and ends.
    """
    from postroom.terminal.tui import chatroom as room

    team = team.lower()
    async with at.office() as office:
        if say is not None:
            number = await office.rooms.write(at.caller, team, say)
            later = "" if at.server_runs else " Postroom does not run; agents read it when it starts."
            at.out.show({"ok": True, "id": number}, f"Posted to #{team}.{later}")
        elif at.server_runs and _is_watched() and not at.out.as_json:
            await room.stay(at, office, team)
        else:
            await _show_once(at, office, team, limit)


async def _show_once(at: CommandContext, office: "OfficeServices", team: str, limit: int) -> None:
    from postroom.services.office_documents import post_document
    from postroom.terminal.tui import chatroom as room

    posts = await room.newest(at, office, team, limit)
    lines = [room.line(post) for post in posts] or [f"Nothing was said in #{team} yet."]
    at.out.show([post_document(post) for post in posts], *lines)
