"""The command `postroom`: all commands together, and what happens when one of them goes wrong."""

import io
import logging
import os
import platform
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from postroom.errors import PostroomError
from postroom.terminal.cli import (
    agents,
    audit,
    backup,
    channels,
    claims,
    dead,
    demo,
    doctor,
    erase,
    guards,
    history_commands,
    housekeepers,
    importing,
    keys,
    ledger,
    live_views,
    messages,
    office_settings,
    pairing,
    pipeline,
    plugins,
    publish,
    queues,
    restore,
    reviews,
    rules,
    schedules,
    schemas,
    scopes,
    send,
    server,
    subscriptions,
    teams,
    tinyagi_commands,
)
from postroom.terminal.cli.command import Shared, command
from postroom.terminal.cli.errors import INTERRUPTED, UNEXPECTED, report, sentence
from postroom.terminal.cli.options import JsonOption, StoreOption, argument
from postroom.terminal.cli.output import Output
from postroom.terminal.cli.store_access import CommandContext

OFFICE = "Office"
START, PLACES, MESSAGES, UPKEEP = "Start here", "Places", "Messages", "Upkeep"

app = typer.Typer(
    name="postroom",
    help="A durable post room for people, programs and teams of AI agents.",
    epilog="Every command explains itself: postroom COMMAND --help. A first look: postroom demo --once",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(_version()["postroom"])
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    store_: StoreOption = None,
    json_: JsonOption = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-v",
            "-V",
            metavar="",
            callback=_print_version,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    context.obj = Shared(store_, json_)
    if context.invoked_subcommand is None:
        server.welcome(Output(as_json=json_))


def _version() -> dict[str, str]:
    import apsw

    from postroom import __version__

    return {
        "postroom": __version__,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }


demo.register(app, START)
server.register(app, START)


@command(app, "version", store=False, panel=START, examples=["postroom version", "postroom version --json"])
def version(at: CommandContext) -> None:
    """Print the versions of Postroom and of what it stands on."""
    found = _version()
    at.out.show(found, f"postroom {found['postroom']} (Python {found['python']}, SQLite {found['sqlite']})")


@command(app, "help", store=False, json=False, panel=START, hidden=True, examples=["postroom help send"])
def help_(
    at: CommandContext, words: Annotated[list[str] | None, argument("COMMAND", "Which; else all.")] = None
) -> None:
    """Show what there is, or how one command is used."""
    get_command(app).main(args=[*(words or ()), "--help"], prog_name="postroom", standalone_mode=False)


send.register(app, START)
for each in (
    agents.app,
    teams.app,
    schedules.app,
    guards.app,
    pairing.app,
    channels.app,
    office_settings.app,
    office_settings.providers,
    plugins.app,
):
    app.add_typer(each, rich_help_panel=OFFICE)
app.add_typer(channels.also, hidden=True)
channels.register(app, OFFICE)
office_settings.register(app, OFFICE)
live_views.register(app, teams.app, OFFICE)
tinyagi_commands.register(app, START, OFFICE, UPKEEP)
for each in (scopes.app, queues.app, schemas.app):
    app.add_typer(each, rich_help_panel=PLACES)
subscriptions.register(app, PLACES)
publish.register(app, MESSAGES)
claims.register(app, MESSAGES)
messages.register(app, MESSAGES)
app.add_typer(dead.app, rich_help_panel=MESSAGES)
app.add_typer(reviews.app, rich_help_panel=MESSAGES)
app.add_typer(rules.app, rich_help_panel=PLACES)
app.add_typer(keys.app, rich_help_panel=UPKEEP)
app.add_typer(audit.app, rich_help_panel=UPKEEP)
history_commands.register(app, MESSAGES)
app.add_typer(pipeline.app, rich_help_panel=UPKEEP)
app.add_typer(ledger.app, rich_help_panel=UPKEEP)
housekeepers.register(app, UPKEEP)
backup.register(app, UPKEEP)
restore.register(app, UPKEEP)
doctor.register(app, UPKEEP)
app.add_typer(importing.app, rich_help_panel=UPKEEP)
erase.register(app, UPKEEP)


def run(args: Sequence[str]) -> int:
    """Carry out one command line; its exit code. Nothing that goes wrong leaves more than one line."""
    words = list(args)
    plain = words[: words.index("--")] if "--" in words else words
    as_json = "--json" in plain
    try:
        code = get_command(app).main(args=words, prog_name="postroom", standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED and sys.stderr.isatty():
            print(file=sys.stderr)  # the terminal has written ^C into the line
        return code if isinstance(code, int) else 0
    except PostroomError as error:
        report(error.code, sentence(error), as_json=as_json)
        return error.exit_code
    except typer.TyperException as error:
        report("USAGE", _usage(error), as_json=as_json)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return UNEXPECTED
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        report("SYSTEM", f"The system refused: {error.strerror or error}{where}.", as_json=as_json)
        return UNEXPECTED
    except Exception as error:
        if os.environ.get("POSTROOM_DEBUG"):
            traceback.print_exc()
        report("UNEXPECTED", _unexpected(error), as_json=as_json)
        return UNEXPECTED


def _usage(error: typer.TyperException) -> str:
    text = error.format_message().replace("Value error, ", "")
    context: Any = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "postroom"
    return f"{text}{'' if text.endswith(('.', '?')) else '.'} See: {path} --help"


def _unexpected(error: Exception) -> str:
    return (
        f"Postroom met something unexpected ({type(error).__name__}: {error}). "
        "Set POSTROOM_DEBUG=1 to see where, and please report it."
    )


def _forget_stdout() -> None:
    """Whoever read has gone; what is left in the buffer must not raise again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.lower()}: {record.getMessage()}"


def main() -> None:
    """The entry of the command `postroom`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    logger = logging.getLogger("postroom")
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    # So that a room that is open is closed properly.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
