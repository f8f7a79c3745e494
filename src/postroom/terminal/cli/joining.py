"""`postroom join`: this host becomes one of an office on a database server. `postroom token`: the owner's."""

import os
import sys
from typing import Annotated

import typer

from postroom.app.home import Home
from postroom.errors import InvalidField
from postroom.settings.errors import TokenDiffers
from postroom.terminal.cli import prompts
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.output import facts
from postroom.terminal.cli.store_access import CommandContext

tokens = group("token", "The owner's token: what opens everything, and how it is replaced.")

QUESTION = "The owner's token"
HOSTS = "Processes of this host take it up by themselves; on other hosts: postroom join"
RESTART = "Now: postroom restart"
NEXT = """Start what this host shall do, for instance:
  postroom start --roles api,worker,housekeeping
An agent works on the host that has its workspace; to have one here: postroom agent move AGENT"""


def register(root: typer.Typer, panel: str) -> None:
    command(
        root,
        "join",
        panel=panel,
        store=False,
        examples=[
            "postroom join postgresql://me@db.example/postroom",
            "ssh office cat .postroom/token | postroom join env:POSTROOM_STORE",
            "postroom join",
        ],
    )(join)
    root.add_typer(tokens, rich_help_panel=panel)


def join(
    at: CommandContext,
    url: Annotated[
        str | None,
        argument("URL", "Of the office's store; best as env:NAME. Without it, that of this home."),
    ] = None,
    redis: Annotated[str | None, option("URL", "Of the Redis beside it, if there is one.", "--redis")] = None,
    yes: Yes = False,
) -> None:
    """Make this host one of an office on a database server.

    Asks for the owner's token, or takes it from POSTROOM_TOKEN or from stdin. Nothing is written before all
    fits."""
    from postroom.app.joining import CLOCK_S, join_office

    home = Home.of()
    address, given = url or _known_address(at), _given_token()
    own = home.path / "postroom.db"
    if own.exists() and not yes:
        confirm(f"{own} holds an office of its own, which is not opened any more. Join the other one?")
    try:
        token = given or _own_token(home) or prompts.secret(QUESTION)
        joined = join_office(home, address, token, redis=redis)
    except TokenDiffers:
        if given or not prompts.somebody():
            raise
        joined = join_office(home, address, prompts.secret(QUESTION), redis=redis)
    for file in joined.kept:
        at.out.note(f"what was there before is kept in {file}")
    if abs(joined.clock_s) > CLOCK_S:
        way = "ahead of" if joined.clock_s > 0 else "behind"
        at.out.note(f"the clock of this machine is {abs(joined.clock_s):,.0f} s {way} the server's; set it")
    document = {
        "host": joined.host,
        "store": joined.store,
        "home": str(home.path),
        "clock_s": round(joined.clock_s, 1),
        "kept": list(joined.kept),
        "hosts": sorted({each.host for each in joined.processes if not each.silent}),
    }
    others = ", ".join(document["hosts"]) or "none; nobody runs at the moment"
    shown = facts([("host", joined.host), ("store", joined.store), ("running", others)])
    at.out.show(document, "Joined.", shown, "", NEXT)


def _known_address(at: CommandContext) -> str:
    store = at.home.settings.load().store.url
    if store is not None:
        return store.written
    if os.environ.get("POSTROOM_STORE"):
        return "env:POSTROOM_STORE"
    raise InvalidField("URL", "is missing: postroom join postgresql://me@db.example/postroom")


def _given_token() -> str | None:
    return os.environ.get("POSTROOM_TOKEN") or _piped_token()


def _piped_token() -> str | None:
    return None if sys.stdin.isatty() else sys.stdin.readline().strip() or None


def _own_token(home: Home) -> str | None:
    """Of a host that is one of the office already, and puts its settings in order."""
    try:
        return home.token.read_text("utf-8", "replace").strip()
    except OSError:
        return None


@command(
    tokens,
    "rotate",
    store=False,
    examples=["postroom token rotate", "pwgen 40 1 | postroom token rotate --given"],
)
def rotate(
    at: CommandContext,
    given: Annotated[bool, flag("Ask for the new one, or read it from stdin.", "--given")] = False,
    lost: Annotated[
        bool, flag("Nobody has the old one: secrets of the settings in the store go with it.", "--lost")
    ] = False,
    yes: Yes = False,
) -> None:
    """Give the owner another token. The old one, all logins and agents' tokens end.

    On a database server the settings are sealed anew, and other hosts stop until they join with it."""
    from postroom.api.auth.owner_token import new_token
    from postroom.app.token_rotation import TokenGiven, is_given, rotate_token

    home = Home.of()
    if is_given(home, os.environ) and not given:
        raise TokenGiven
    token = (_piped_token() or prompts.secret("The new token")) if given else new_token()
    if not yes:
        also = ", and keys and bot tokens in the settings are given up" if lost else ""
        confirm(f"The old token, all logins and the tokens of agents end{also}. Go on?")
    given_up = rotate_token(home, token, os.environ, is_lost=lost)
    where = f"It is in {home.token}."
    if is_given(home, os.environ):
        where = "Set it in POSTROOM_TOKEN or api.token."
    told = [f"Set anew: {', '.join(given_up)}."] if given_up else []
    told.append(HOSTS if at.is_on_server else RESTART)
    at.out.show({"ok": True, "lost": given_up}, f"The token is another one now. {where}", *told)
