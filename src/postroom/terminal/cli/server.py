"""`postroom start`, `stop`, `restart`, `status`, `logs`, `login`: the server as a running process."""

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import msgspec
import typer

from postroom.app.home import Home
from postroom.app.roles import Running, roles, running
from postroom.clock import SystemClock, from_datetime, iso
from postroom.errors import PostroomError
from postroom.kernel import checks
from postroom.terminal.cli import prompts
from postroom.terminal.cli.command import command
from postroom.terminal.cli.connection import find_server, make_login_link
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.output import Output, ago, clean, facts, span
from postroom.terminal.cli.store_access import CommandContext

if TYPE_CHECKING:
    from postroom.services.office import OfficeServices
    from postroom.services.office_context import ProcessFacts

Roles = Annotated[
    str | None,
    option("NAMES", "Of api, portal, worker, channels, housekeeping, pipeline. Default all.", "--roles"),
]


def register(app: typer.Typer, panel: str) -> None:
    command(
        app,
        "start",
        panel=panel,
        store=False,
        examples=["postroom start", "postroom start --foreground", "POSTROOM_API_PORT=4000 postroom start"],
    )(start)
    command(app, "stop", panel=panel, store=False, examples=["postroom stop", "postroom stop --limit 5"])(
        stop
    )
    command(app, "restart", panel=panel, store=False, examples=["postroom restart"])(restart)
    command(app, "status", panel=panel, store=False, examples=["postroom status", "postroom status --json"])(
        status
    )
    command(
        app,
        "logs",
        panel=panel,
        store=False,
        examples=["postroom logs", "postroom logs -f", "postroom logs telegram -n 500"],
    )(logs)
    command(
        app,
        "login",
        panel=panel,
        store=False,
        examples=["postroom login", "postroom login --role viewer --name Ann"],
    )(login)


def start(
    at: CommandContext,
    foreground: Annotated[bool, flag("Stay in this terminal, until Ctrl-C.", "--foreground")] = False,
    roles_: Roles = None,
) -> None:
    """Start the server: the API, the agents, the channels, the housekeeping."""
    from postroom.app import first_run

    home, chosen = Home.of(), roles(roles_)
    first_run.prepare(home)
    if foreground:
        keep(home, chosen, at.out)
        return
    from postroom.app import process

    _say_ready(at.out, process.start(home, chosen))


def keep(home: Home, chosen: frozenset[Any], out: Output) -> None:
    from postroom.app import process, server_process

    def ready(found: Running) -> None:
        _say_ready(out, found)
        process.say_ready()

    plan = server_process.ProcessPlan(home=home, roles=chosen, terminal=sys.stderr.isatty())
    if asyncio.run(server_process.keep(plan, ready)) is server_process.Ending.RESTART:
        # The same process begins anew, so that whoever supervises it sees it stay.
        os.execv(sys.executable, [sys.executable, "-m", "postroom", *sys.argv[1:]])


def _say_ready(out: Output, found: Running) -> None:
    where = f" on {found.url}" if found.url else f" as {', '.join(found.roles)}"
    out.show(_document(found), f"postroom ready{where}")
    sys.stdout.flush()


def _document(found: Running) -> dict[str, Any]:
    return {
        "pid": found.pid,
        "roles": list(found.roles),
        "url": found.url,
        "version": found.version,
        "started_at": found.started_at,
    }


Limit = Annotated[
    float, option("SECONDS", "How long turns in hand may take to finish. Default 30.", "--limit")
]


def stop(at: CommandContext, limit: Limit = 30.0) -> None:
    """Stop the server. What is accepted is kept, whatever happens."""
    from postroom.app import process

    stopped = process.stop(Home.of(), patience_s=limit, tell=at.out.note)
    told = f"Stopped (process {', '.join(map(str, stopped))})." if stopped else "Postroom does not run."
    at.out.show({"stopped": list(stopped)}, told)


def restart(at: CommandContext, limit: Limit = 30.0, roles_: Roles = None) -> None:
    """Stop the server and start it again. If it could not start, it is not stopped."""
    from postroom.app import process, readiness

    home = Home.of()
    before = running(home.run)
    wanted = [roles(roles_)] if roles_ or not before else [frozenset(found.roles) for found in before]
    for chosen in wanted if before else []:
        readiness.check(home, chosen)
    process.stop(home, patience_s=limit, tell=at.out.note)
    for chosen, found in zip(wanted, before if len(wanted) > 1 else [None], strict=True):
        _say_ready(at.out, process.start(home, chosen, environment=_at_address_of(found)))


def _at_address_of(found: Running | None) -> dict[str, str]:
    """Of several processes that serve the API, each has a port of its own, which only it knows."""
    port = urlsplit(found.url).port if found is not None and found.url else None
    return {**os.environ, **({"POSTROOM_API_PORT": str(port)} if port else {})}


async def status(at: CommandContext) -> None:
    """Show whether the server runs, and how many messages are where."""
    home = Home.of()
    found = running(home.run)
    if not found and not (home.host and at.is_on_server):
        at.out.show(
            {"running": False, "home": str(home.path)}, "Postroom does not run. Start it: postroom start"
        )
        raise typer.Exit(4)
    try:
        # On a database server there may be others, also where nobody here can be asked.
        told = await _ask(at) if find_server(home) or home.host else {}
    except PostroomError as error:
        told = {}
        at.out.note(str(error))
    now = SystemClock().now()
    others = [each for each in told.pop("others", ()) if not _is_here(each, found, home.host)]
    document = {
        "running": bool(found),
        "home": str(home.path),
        **({"host": home.host} if home.host else {}),
        "processes": [_document(each) for each in found],
        **({"elsewhere": [_other_document(each) for each in others]} if others else {}),
        **told,
    }
    pairs: list[tuple[str, Any]] = []
    for each in found:
        pairs += [
            ("address", each.url),
            ("process", f"{each.pid}, {', '.join(each.roles)}, started {ago(each.started_at, now)}"),
        ]
    pairs.append(("home", str(home.path)))
    if home.host:
        pairs.append(("host", home.host))
    pairs += [("elsewhere", _describe_other(each, now)) for each in others]
    if queue := told.get("queue"):
        named = {"activeConversations": "conversations open"}
        mail = (f"{count} {named.get(name, name)}" for name, count in queue.items())
        pairs.append(("mail", ", ".join(mail)))
    if agents := told.get("agents"):
        pairs.append(("agents", ", ".join(agents)))
    if lake := told.get("pipeline"):
        pairs.append(("pipeline", describe_pipeline(lake, now)))
    at.out.show(document, facts(pairs))
    if not found:
        at.out.note("Postroom does not run on this host. Start it: postroom start")
        raise typer.Exit(4)


def _is_here(each: "ProcessFacts", found: Sequence[Running], host: str) -> bool:
    return each.host == host and (each.silent or each.pid in {own.pid for own in found})


def _other_document(each: "ProcessFacts") -> dict[str, Any]:
    times = {"started_at": iso(each.started_at), "seen_at": iso(each.seen_at)}
    return {**msgspec.structs.asdict(each), "roles": list(each.roles), **times}


def _describe_other(each: "ProcessFacts", now: int) -> str:
    seen = f"{'silent, ' if each.silent else ''}last heard of {ago(each.seen_at, now)}"
    url = f", {each.url}" if each.url else ""
    return f"{each.host}: process {each.pid}, {', '.join(each.roles)}, {each.version}{url}, {seen}"


PIPELINE_FACTS = ("position", "behind", "running", "house", "expectations", "last_run")


async def _ask(at: CommandContext) -> dict[str, Any]:
    from postroom.services.office_documents import counts_document

    async with at.office() as office:
        return {
            "queue": counts_document(await office.workload.counts(at.caller)),
            "agents": sorted(await office.agents.list_all(at.caller)),
            "pipeline": await _lake(at, office),
            "others": (await office.system.status(at.caller)).processes,
        }


async def _lake(at: CommandContext, office: "OfficeServices") -> dict[str, Any] | None:
    """None where the pipeline is not installed."""
    try:
        told = await office.insights.state(at.caller)
    except PostroomError:
        return None
    return {name: told[name] for name in PIPELINE_FACTS}


def describe_pipeline(lake: dict[str, Any], now: int) -> str:
    """One line: what it does now, or how its last run went, and when the next one is due."""
    running, plans = lake["running"], lake["house"] or {}
    last, due = plans.get("last"), plans.get("next_at")
    if running:
        step = running.get("progress") or {}
        some = f", {step['step']} {step['done']:,} of {step['total']:,}" if step.get("total") else ""
        return f"runs (process {running['pid']}{some})"
    if last and last["ended_at"] is None and last["ok"] is None:
        return f"runs (process {last['pid']}, starting)"
    parts = ["never run" if not lake["position"] else f"at event {lake['position']:,}"]
    if lake["behind"]:
        parts.append(f"{lake['behind']:,} behind")
    if last and last["ended_at"]:
        when = f"last run {ago(last['ended_at'], now)}"
        if last["ok"]:
            parts.append(f"{when} went well")
        elif not _is_overcome(lake, last["ended_at"]):
            parts.append(f"{when} failed: {last['problem']}")
    if broken := len(lake["expectations"]["broken"]):
        parts.append(f"{broken} expectation{'s' if broken > 1 else ''} broken, see: postroom pipeline status")
    if due:
        parts.append("next run now" if due <= now else f"next run in {span((due - now) / 1e6)}")
    return "; ".join(parts)


def _is_overcome(lake: dict[str, Any], failed_at: int) -> bool:
    """Whether a run that somebody else started has come through since, or nothing is left to do."""
    steps = lake.get("last_run") or []
    begun = max((from_datetime(datetime.fromisoformat(step["started_at"])) for step in steps), default=0)
    came_through = begun > failed_at and not any(step["status"] == "failed" for step in steps)
    return came_through or (lake["position"] > 0 and lake["behind"] == 0)


def logs(
    at: CommandContext,
    name: Annotated[
        str | None, argument("NAME", "Only of this part: telegram, daemon, schedules … Default all.")
    ] = None,
    follow: Annotated[bool, flag("Go on as lines come, until Ctrl-C.", "--follow", "-f")] = False,
    lines: Annotated[int, option("N", "So many of the newest lines. Default 100.", "-n", "--lines")] = 100,
) -> None:
    """Show the server's log."""
    from postroom.services.log_lines import FILE, last_lines, parsed, plain

    checks.check_count("--lines", lines, least=0, most=MOST_LINES)
    folder, count = Home.of().logs, lines
    part = None if name in EVERYTHING else name
    found = [line for line in last_lines(folder, count if part is None else SEARCHED) if _is_of(line, part)]
    for line in found[-count:] if count else []:
        _show(at.out, line, plain(line))
    if not found and not follow:
        at.out.note(f"there is nothing{f' of {part}' if part else ''} in {folder / FILE}")
    if follow:
        for text in _new_lines(folder / FILE):
            line = parsed(text)
            if _is_of(line, part):
                _show(at.out, line, plain(line))


# Names of logs that were kept apart elsewhere; here they are one.
EVERYTHING = (None, "all", "queue", "daemon")
SEARCHED = 10_000
MOST_LINES = 1_000_000


def _is_of(line: dict[str, Any], part: str | None) -> bool:
    """Whether a line comes from this part of the server, or names it."""
    if part is None:
        return True
    origin = str(line.get("from", "")).lower().split(".")
    return any(each.startswith(part.lower()) for each in origin)


def _show(out: Output, line: dict[str, Any], text: str) -> None:
    if out.as_json:
        out.line(line)
    else:
        sys.stdout.write(clean(text) + "\n")
        sys.stdout.flush()


def _new_lines(path: Path) -> Iterator[str]:
    """Lines as they are written, also after the file was replaced by a new one."""
    file = None
    rest = ""
    at_end = True
    try:
        while True:
            if file is None:
                try:
                    file = path.open(encoding="utf-8", errors="replace")
                    file.seek(0, os.SEEK_END if at_end else os.SEEK_SET)
                except OSError:
                    time.sleep(0.2)
                    continue
                finally:
                    at_end = False
            rest += file.read()
            *whole, rest = rest.split("\n")
            yield from whole
            try:
                replaced = path.stat().st_ino != os.fstat(file.fileno()).st_ino
            except OSError:
                replaced = True
            if replaced and not whole:
                file.close()
                file = None
            elif not whole:
                time.sleep(0.2)
    finally:
        if file is not None:
            file.close()


async def login(
    at: CommandContext,
    role: Annotated[
        str | None, option("ROLE", "For somebody else: member takes part, viewer only looks.", "--role")
    ] = None,
    name: Annotated[str, option("NAME", "As others see them.", "--name")] = "guest",
) -> None:
    """Print a link that logs a browser in, once."""
    found = await make_login_link(role, name)
    at.out.show(found, found["url"])


WELCOME = """Postroom is the post room of a team of AI agents. It is open now.

  {link}

Open this link in a browser; it works once. From here:
"""
FIRST = "This is the first start. Set up the office now, to have a real answer in a minute?"
NEXT = (
    ('postroom send "@{agent} hello" --wait', "write to an agent and see its answer"),
    ("postroom agent list", "who works here"),
    ("postroom status", "what goes on"),
    ("postroom stop", "stop the server"),
    ("postroom --help", "everything else"),
)


def welcome(out: Output) -> None:
    """`postroom` alone: the server runs afterwards, and the person knows how to go on."""
    from postroom.app import first_run, process
    from postroom.app.office_settings import load_settings
    from postroom.app.roles import ALL

    home = Home.of()
    new = first_run.prepare(home)
    if new and not out.as_json and prompts.somebody() and prompts.yes(FIRST, default=True):
        from postroom.terminal.cli.app import run

        run(["setup"])  # what went wrong was told; the office opens all the same
    found = find_server(home) or process.start(home, ALL)
    _say_ready(out, found)
    if out.as_json:
        return
    settings = load_settings(home, os.environ)
    if new:
        out.say(f"\nThis is the first start: settings, mail and logs are in {home.path}.")
        agent = next(iter(settings.present_agents().values()))
        if agent.provider == "script":
            out.say(
                "No agent program was found (claude, codex, opencode), so the first agent only echoes.\n"
                "To let it work with a program, a key or a server of yours: postroom setup"
            )
    url = asyncio.run(make_login_link())["url"]
    name = settings.default_agent_id()
    out.say("\n" + WELCOME.format(link=url))
    lines = [(line.format(agent=name), about) for line, about in NEXT]
    width = max(len(line) for line, _ in lines)
    for line, about in lines:
        out.say(f"  {line:<{width}}   {about}")
