"""The command `postroom`: all commands together, and what happens when one of them goes wrong."""

import gc
import io
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from postroom.errors import PostroomError
from postroom.terminal.cli.catalog import CatalogGroup
from postroom.terminal.cli.command import Shared
from postroom.terminal.cli.errors import INTERRUPTED, UNEXPECTED, report, sentence
from postroom.terminal.cli.options import JsonOption, StoreOption

app = typer.Typer(
    name="postroom",
    cls=CatalogGroup,
    help="A durable post room for people, programs and teams of AI agents.",
    epilog="Every command explains itself: postroom COMMAND --help. A first look: postroom demo --once",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from postroom import __version__

        typer.echo(__version__)
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
        from postroom.terminal.cli.output import Output
        from postroom.terminal.cli.server import welcome

        welcome(Output(as_json=json_))


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
    code = run(sys.argv[1:])
    if "_duckdb" not in sys.modules:  # which complains of what nobody has collected
        # Or the interpreter looks through everything for garbage once more before it throws everything away.
        gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    main()
