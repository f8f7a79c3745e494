"""`postroom demo`: a team at work, or a queue, in a room of its own that is gone afterwards."""

import asyncio
import shlex
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from postroom.runtime import open_sync
from postroom.terminal.cli.command import command
from postroom.terminal.cli.demo_queue import Play
from postroom.terminal.cli.options import flag, option
from postroom.terminal.cli.output import Output
from postroom.terminal.cli.store_access import CommandContext


class What(StrEnum):
    OFFICE = "office"
    QUEUE = "queue"
    PORTAL = "portal"


def register(app: typer.Typer, panel: str) -> None:
    command(
        app,
        "demo",
        panel=panel,
        store=False,
        examples=[
            "postroom demo",
            "postroom demo --once",
            "postroom demo queue",
            "postroom demo portal",
            "postroom demo --once --json",
            "postroom demo --history 30d --rate 400",
        ],
    )(demo)


def demo(
    at: CommandContext,
    what: Annotated[
        What, typer.Argument(help="A team of agents, the queue they stand on, or an office in the browser.")
    ] = What.OFFICE,
    once: Annotated[bool, flag("End after the demo, instead of staying open.", "--once")] = False,
    history: Annotated[
        float | None,
        option("DURATION", "Make so much past mail instead, in ./postroom-month.db.", "--history"),
    ] = None,
    rate: Annotated[float, option("N", "With --history: people a day. Default 400.", "--rate")] = 400.0,
) -> None:
    """Watch a team of three agents take a request, fail, try again, and answer.

    It needs no key and no network, works in a temporary folder, and touches nothing else. With `queue`, it
    shows the queue alone: five messages published, claimed, retried, buried and brought back. With `portal`,
    an office with three weeks behind it opens in the browser, until Ctrl-C.
    """
    if history is not None:
        from postroom.terminal.cli.pipeline import generate

        generate(
            CommandContext(f"sqlite:///{Path.cwd() / 'postroom-month.db'}", at.out),
            history=history,
            rate=rate,
        )
        return
    with _folder() as folder:
        if what is What.PORTAL:
            from postroom.terminal.cli.demo_portal import serve

            serve(folder, at.out)
            return
        url = f"sqlite:///{folder / 'room.db'}"
        if what is What.QUEUE:
            with open_sync(url, actor="demo") as room:
                Play(room, CommandContext(url, at.out)).run()
                if not once:
                    _stay_open(at.out, url, ("queue list", "list letters", "ledger tail -f"))
            return
        # Only here: the queue's commands need none of it.
        from postroom.terminal.cli.demo_office import play

        asyncio.run(play(folder, url, at.out))
        if not once:
            with open_sync(url, actor="demo"):
                _stay_open(at.out, url, ("list --scope office", "dead list", "ledger tail"))


@contextmanager
def _folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="postroom-demo-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _stay_open(out: Output, url: str, lines: tuple[str, ...]) -> None:
    out.say("")
    out.say("The demo's room stays open. Look into it from another terminal:", style="bold")
    for line in lines:
        out.say(f"  postroom {line} --store {shlex.quote(url)}")
    out.say("Ctrl-C stops the demo and removes its room.", style="bold")
    sys.stdout.flush()
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        out.say("")
        out.say("The demo's room is closed and removed.")
