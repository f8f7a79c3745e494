"""`postroom top`: the office on one screen."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, cast

import msgspec
import typer

from postroom.terminal.cli.command import command
from postroom.terminal.cli.options import flag, option
from postroom.terminal.cli.store_access import CommandContext

if TYPE_CHECKING:
    from postroom.services.needs_you import PersonNeed
    from postroom.services.server import ServerServices
    from postroom.terminal.tui.top_snapshot import TopSnapshot


def register(root: typer.Typer, panel: str) -> None:
    command(
        root,
        "top",
        panel=panel,
        store=False,
        examples=["postroom top", "postroom top --plain", "postroom top --url https://room.example.org"],
    )(top)


async def top(
    at: CommandContext,
    url: Annotated[
        str | None, option("URL", "A server elsewhere; its token is POSTROOM_TOKEN. Default yours.", "--url")
    ] = None,
    plain: Annotated[bool, flag("Once, as lines, for pipes.", "--plain")] = False,
) -> None:
    """Watch the office: what needs you, who works, what waits. Numbers answer, q leaves.

    Where the output is no terminal, it shows once how things are, as with --plain.
    """
    from postroom.terminal.cli.live_events import live_events
    from postroom.terminal.tui.top_snapshot import read_top, tell_plain

    place, token = find_place(at, url)
    async with open_services(place, token) as services:

        async def look() -> "TopSnapshot":
            return await read_top(services, at.caller, at.clock.now())

        if plain or at.out.as_json or not (sys.stdout.isatty() and sys.stdin.isatty()):
            found = await look()
            at.out.show(msgspec.to_builtins(found), *tell_plain(found))
            return

        from postroom.services.need_answers import give_answer
        from postroom.terminal.tui.top import TopScreen

        async def answer(need: "PersonNeed", word: str) -> None:
            await give_answer(services, at.caller, need, word)

        await TopScreen(
            place, look, answer, lambda since: live_events("", since, url=place, token=token)
        ).run_async()


def find_place(at: CommandContext, url: str | None) -> tuple[str, str]:
    from postroom.app.process import NotRunning
    from postroom.terminal.cli.connection import find_server, token_of

    if url is not None:
        return url.rstrip("/"), os.environ.get("POSTROOM_TOKEN", "")
    found = find_server(at.home)
    if found is None or found.url is None:
        raise NotRunning
    return found.url, token_of(at.home)


@contextlib.asynccontextmanager
async def open_services(url: str, token: str) -> AsyncIterator["ServerServices"]:
    from postroom.terminal.cli.remote import remote_services

    async with remote_services(url, token) as services:
        yield cast("ServerServices", services)
