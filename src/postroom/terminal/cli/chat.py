"""`postroom chat`: talk with an agent or a team on a full screen."""

import sys
from typing import Annotated

import typer

from postroom.terminal.cli.command import command
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.send import NobodyThere
from postroom.terminal.cli.store_access import CommandContext, whoami
from postroom.terminal.cli.top import find_place, open_services


def register(root: typer.Typer, panel: str) -> None:
    command(
        root,
        "chat",
        panel=panel,
        store=False,
        examples=["postroom chat coder", "postroom chat dev", "postroom chat coder --plain"],
    )(chat)


async def chat(
    at: CommandContext,
    name: Annotated[str, argument("AGENT|TEAM", "With whom.")],
    url: Annotated[
        str | None, option("URL", "A server elsewhere; its token is POSTROOM_TOKEN. Default yours.", "--url")
    ] = None,
    plain: Annotated[bool, flag("What was said last, as lines, for pipes.", "--plain")] = False,
) -> None:
    """Talk with an agent or a team: answers appear as they are written.

    A team's leader gets what you write, and every answer of its members to you is shown; its room, where
    everybody reads, is `postroom chatroom`. Escape stops the turn, Page Up shows what was said before,
    Ctrl+Q leaves. Where the output is no terminal, it shows what was said last, as with --plain.
    """
    from postroom.terminal.cli.live_events import live_events
    from postroom.terminal.tui.conversation import AgentConversation, TeamConversation, tell_entry

    place, token = find_place(at, url)
    name = name.removeprefix("@").removeprefix("#").lower()
    async with open_services(place, token) as services:
        teams = await services.teams.list_all(at.caller)
        if name in await services.agents.list_all(at.caller):
            conversation = AgentConversation(services, at.caller, name, whoami())
        elif name in teams:
            conversation = TeamConversation(services, at.caller, name, tuple(teams[name].agents), whoami())
        else:
            raise NobodyThere(name=name)
        if plain or at.out.as_json or not (sys.stdout.isatty() and sys.stdin.isatty()):
            import msgspec

            from postroom.clock import iso

            found = await conversation.read()
            documents = [
                {**msgspec.structs.asdict(each), "created_at": iso(each.created_at)} for each in found
            ]
            at.out.show(documents, *([tell_entry(each) for each in found] or ["Nothing was said yet."]))
            return

        from postroom.terminal.tui.chat_screen import ChatScreen

        await ChatScreen(
            conversation, lambda since: live_events("", since, url=place, token=token)
        ).run_async()
