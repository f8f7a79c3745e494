"""Words that people know from TinyAGI, where they did something that here happens otherwise, or by itself."""

import json
import re
import subprocess
import sys
import webbrowser
from importlib import metadata
from typing import Annotated, Any

import typer

from postroom.app.home import Home
from postroom.clock import SECOND, SystemClock, iso
from postroom.errors import PostroomError
from postroom.terminal.cli import agents, server
from postroom.terminal.cli.command import command
from postroom.terminal.cli.connection import find_server, make_login_link
from postroom.terminal.cli.options import flag
from postroom.terminal.cli.output import ago, facts, span, table
from postroom.terminal.cli.store_access import CommandContext

LOOK_S = 60


class NoNews(PostroomError):
    """Whether there is a newer version could not be found out: {reason}. Try: {command}"""

    code = "NO_NEWS"
    exit_code = 6


def register(root: typer.Typer, panel: str) -> None:
    command(root, "run", panel=panel, store=False, hidden=True, examples=["postroom run"])(run)
    command(
        root, "office", panel=panel, store=False, examples=["postroom office", "postroom office --print"]
    )(portal)
    command(root, "reset", panel=panel, store=False, examples=["postroom reset coder reviewer"])(agents.reset)
    command(root, "heartbeat", panel=panel, store=False, examples=["postroom heartbeat"])(heartbeat)
    command(
        root, "update", panel=panel, store=False, examples=["postroom update", "postroom update --check"]
    )(update)
    command(root, "install", panel=panel, store=False, hidden=True, examples=["postroom install"])(install)


def run(at: CommandContext) -> None:
    """Start the server and say how to go on, as postroom alone does."""
    server.welcome(at.out)


async def portal(
    at: CommandContext,
    only_print: Annotated[bool, flag("Only print the link, open nothing.", "--print")] = False,
) -> None:
    """Open the portal in a browser, logged in. Without a terminal, print the link."""
    link = await make_login_link()
    found = find_server(Home.of())
    opened = False
    if not only_print and not at.out.as_json and sys.stdout.isatty():
        opened = webbrowser.open(link["url"])
    address = found.url if found is not None else None
    text = f"The page is open in your browser: {address}" if opened else link["url"]
    at.out.show({"address": address, **link, "opened": opened}, text)


async def heartbeat(at: CommandContext) -> None:
    """Show which agents wake up by themselves, how often, and when they last did."""
    async with at.office() as office:
        status = await office.system.status(at.caller)
        agents = await office.agents.list_all(at.caller)
    now = SystemClock().now()
    document: dict[str, Any] = {
        "interval": status.interval_s,
        "interval_s": status.interval_s,
        "agents": {},
    }
    rows: list[tuple[str, str, str]] = []
    for name, one in agents.items():
        last = status.heartbeats.get(name)
        document["agents"][name] = {
            "every": one.heartbeat_s,
            "last": last and last // SECOND,
            "every_s": one.heartbeat_s,
            "last_at": last and iso(last),
        }
        rows.append((name, f"every {span(one.heartbeat_s)}" if one.heartbeat_s else "off", ago(last, now)))
    at.out.show(document, table(["agent", "heartbeat", "last"], rows))
    if not status.interval_s and not at.out.as_json:
        at.out.note("on for all, every hour: postroom settings set monitoring.heartbeat_interval 3600")


def update(
    at: CommandContext,
    check: Annotated[bool, flag("Ask the package index whether there is a newer one.", "--check")] = False,
) -> None:
    """Say how to upgrade. Nothing is asked over the network, unless you want it."""
    here, how = metadata.version("postroom"), _way()
    newest = _newest() if check else None
    document: dict[str, Any] = {"version": here, "upgrade": how}
    if check:
        document["newest"] = newest or here
    told = {None: None, True: f"{newest} is there", False: "this is the newest"}[
        bool(newest) if check else None
    ]
    steps = f"postroom backup before-update.db && {how} && postroom restart"
    at.out.show(document, facts([("version", here), ("newest", told), ("to upgrade", steps)]))


def _way() -> str:
    """How this copy came here, and so how a newer one comes."""
    try:
        told = json.loads(metadata.distribution("postroom").read_text("direct_url.json") or "{}")
    except ValueError:
        told = {}
    if (told.get("dir_info") or {}).get("editable"):
        return f"git -C {told['url'].removeprefix('file://')} pull"
    for sign, way in (("/pipx/", "pipx upgrade postroom"), ("/uv/tools/", "uv tool upgrade postroom")):
        if sign in sys.prefix:
            return way
    return f"{sys.executable} -m pip install --upgrade 'postroom[all]'"


def _newest() -> str | None:
    """A version that is newer than this one, by the index pip is set up to ask."""
    # As if none were installed: else pip answers with the one that is, when it cannot ask.
    words = "install --dry-run --ignore-installed --no-deps --quiet --report - postroom"
    line = [sys.executable, "-m", "pip", *words.split()]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=LOOK_S, check=True)
        newest = json.loads(done.stdout)["install"][0]["metadata"]["version"]
    except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
        told = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        reason = (told[-1] if told else "pip failed").removeprefix("ERROR: ").rstrip(".")
        raise NoNews(reason=reason, command=_way()) from None
    return newest if _order(newest) > _order(metadata.version("postroom")) else None


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def install(at: CommandContext) -> None:
    """Nothing is left to install: say what there is to do instead."""
    told = {
        "to begin": "postroom",
        "to begin with what TinyAGI left": "postroom import tinyagi --dry-run",
        "to start with the machine": "see deploy/postroom.service and docs/operations/running.md",
        "to complete names in the shell": "postroom --install-completion",
    }
    at.out.show(told, "Postroom is installed.", facts(told.items()))
