"""`postroom team visualize` and `postroom chatroom`: the office, live in the terminal."""

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.clock import iso
from postroom.terminal.cli.command import command
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.cli.top import find_place, open_services

if TYPE_CHECKING:
    from postroom.services.office import OfficeServices
    from postroom.services.server import ServerServices
    from postroom.terminal.tui.floor import Floor

NAMES = "message:incoming,agent:invoke,agent:progress,agent:response,agent:mention,message:done"
LEAVE = frozenset({"q", "quit", "exit"})
UrlOption = Annotated[
    str | None, option("URL", "A server elsewhere; its token is POSTROOM_TOKEN. Default yours.", "--url")
]
PlainOption = Annotated[bool, flag("Once, as lines, for pipes.", "--plain")]
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
    at: CommandContext,
    team: Annotated[str | None, argument("TEAM", "Only this team. Default all.")] = None,
    url: UrlOption = None,
    plain: PlainOption = False,
) -> None:
    """Watch the agents at work: cards, hand-offs, what goes on. q leaves.

    Enter opens what is chosen, s stops a turn, r tries a dead letter again, Page Up shows what was before.
    Where the output is no terminal, or Postroom does not run, it shows once how things are, as with --plain.
    """
    from postroom.terminal.tui.floor import Floor

    is_watched = _is_watched() and not plain and not at.out.as_json
    if url is not None or (at.server_runs and is_watched):
        place, token = find_place(at, url)
        async with open_services(place, token) as services:
            floor = await Floor.read(services, at.caller, team)
            if is_watched:
                await _watch(at, services, floor, place, token)
                return
            floor.online = True
    else:
        async with at.office() as office:
            floor = await Floor.read(office, at.caller, team)
            floor.online = at.server_runs
    _show_floor(at, floor)


async def _watch(
    at: CommandContext, services: "ServerServices", floor: "Floor", url: str, token: str
) -> None:
    from postroom.terminal.cli.live_events import find_last_event, live_events
    from postroom.terminal.tui.floor_screen import PAST, FloorScreen
    from postroom.terminal.tui.live_screen import LiveEvent
    from postroom.terminal.tui.team_work import TeamWork

    async def earlier(number: int) -> list[LiveEvent]:
        since, until = str(max(0, number - PAST)), str(number)
        past = live_events(NAMES, since, until=until, url=url, token=token)
        return [event async for event in past]

    screen = FloorScreen(
        floor,
        TeamWork(services, at.caller, frozenset(floor.cards)),
        lambda since: live_events(NAMES, since, url=url, token=token),
        earlier,
        await find_last_event(url, token),
    )
    await screen.run_async()


def _show_floor(at: CommandContext, floor: "Floor") -> None:
    from postroom.terminal.tui.render import frame

    document = {
        "agents": {
            name: {**asdict(card), "doing": card.doing.name.lower()} for name, card in floor.cards.items()
        },
        "running": floor.online,
        "waiting": floor.waiting,
        "dead": floor.dead,
    }
    at.out.show(document, frame(floor, time.time(), live=False))


async def chatroom(
    at: CommandContext,
    team: TeamId,
    say: Annotated[str | None, option("TEXT", "Post this, and end.", "--say")] = None,
    limit: Annotated[int, option("N", "So many of the newest lines. Default 50.", "-n", "--limit")] = 50,
    url: UrlOption = None,
    plain: PlainOption = False,
) -> None:
    """Sit in the room of a team: read what is said, and write. q leaves.

    The arrows choose a line, Ctrl+O opens it, Escape stops a turn, Page Up shows what was said before. Where
    the output is no terminal, or Postroom does not run, it shows the newest lines and ends, as with --plain.
    """
    from postroom.terminal.tui.conversation import RoomConversation

    team = team.lower()
    is_watched = _is_watched() and not plain and not at.out.as_json
    if url is None and not (at.server_runs and is_watched and say is None):
        async with at.office() as office:
            await _post_or_show(at, office, team, say, limit)
        return
    place, token = find_place(at, url)
    async with open_services(place, token) as services:
        if say is not None or not is_watched:
            await _post_or_show(at, services, team, say, limit)
            return
        from postroom.terminal.cli.live_events import live_events
        from postroom.terminal.tui.chat_screen import ChatScreen

        members = tuple((await services.teams.get(at.caller, team)).agents)
        conversation = RoomConversation(services, at.caller, team, members)
        screen = ChatScreen(
            conversation, lambda since: live_events("", since, url=place, token=token), leave_words=LEAVE
        )
        await screen.run_async()


async def _post_or_show(
    at: CommandContext, office: "OfficeServices", team: str, say: str | None, limit: int
) -> None:
    from postroom.services.office_documents import post_document
    from postroom.terminal.tui.conversation import tell_post

    if say is not None:
        number = await office.rooms.write(at.caller, team, say)
        later = "" if at.server_runs else " Postroom does not run; agents read it when it starts."
        at.out.show({"ok": True, "id": number}, f"Posted to #{team}.{later}")
        return
    posts = (await office.rooms.read(at.caller, team, limit=limit))[::-1]
    lines = [tell_post(post) for post in posts] or [f"Nothing was said in #{team} yet."]
    documents = [{**post_document(each), "created_at": iso(each.created_at * 1000)} for each in posts]
    at.out.show(documents, *lines)
