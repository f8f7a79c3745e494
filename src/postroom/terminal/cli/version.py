"""`postroom version` and `postroom help`: what runs here, and how it is used."""

import platform
from typing import Annotated

import typer
from typer.main import get_command

from postroom.terminal.cli.command import command
from postroom.terminal.cli.options import argument
from postroom.terminal.cli.store_access import CommandContext


def register(root: typer.Typer, panel: str) -> None:
    command(
        root, "version", store=False, panel=panel, examples=["postroom version", "postroom version --json"]
    )(version)
    command(root, "help", store=False, json=False, panel=panel, hidden=True, examples=["postroom help send"])(
        help_
    )


def version(at: CommandContext) -> None:
    """Print the versions of Postroom and of what it stands on."""
    import apsw

    from postroom import __version__

    found = {
        "postroom": __version__,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }
    at.out.show(found, f"postroom {found['postroom']} (Python {found['python']}, SQLite {found['sqlite']})")


def help_(
    at: CommandContext, words: Annotated[list[str] | None, argument("COMMAND", "Which; else all.")] = None
) -> None:
    """Show what there is, or how one command is used."""
    from postroom.terminal.cli.app import app

    get_command(app).main(args=[*(words or ()), "--help"], prog_name="postroom", standalone_mode=False)
