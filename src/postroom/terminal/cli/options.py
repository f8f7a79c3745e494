"""Options and arguments as all commands declare them, so that help looks the same everywhere."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from postroom.terminal.cli.completion import message_ids as complete_messages
from postroom.terminal.cli.completion import queues as complete_queues
from postroom.terminal.cli.completion import scopes as complete_scopes
from postroom.terminal.cli.values import duration, json_object, json_value, label, when

# What help shows for a value, and how it is read.
_KINDS: dict[str, Callable[[str], Any] | None] = {
    "TEXT": None,
    "NAME": None,
    "ID": None,
    "N": None,
    "DURATION": duration,
    "TIME": when,
    "NAME=TEXT": label,
    "JSON": json_value,
    "JSON OBJECT": json_object,
}


def option(kind: str, about: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    """An option with a value. Its default is told in words, where there is one."""
    settings: dict[str, Any] = {"show_default": False, **more}
    if settings.get("parser") is None and _KINDS.get(kind) is not None:
        settings["parser"] = _KINDS[kind]
    return typer.Option(*names, metavar=kind, help=about, rich_help_panel=panel, **settings)


def choice(of: type[StrEnum], about: str, name: str, *, default: str = "", panel: str | None = None) -> Any:
    """One of a few words, which help lists."""
    words = ", ".join(of)
    told = f"{about}: {words}." + (f" Default {default}." if default else "")
    kind = name.removeprefix("--").upper()
    return typer.Option(name, metavar=kind, help=told, rich_help_panel=panel, show_default=False)


def flag(about: str, *names: str, panel: str | None = None) -> Any:
    return typer.Option(*names, metavar="", help=about, rich_help_panel=panel, show_default=False)


def argument(name: str, about: str, **more: Any) -> Any:
    return typer.Argument(metavar=name, help=about, show_default=False, **more)


QueuePath = Annotated[
    str,
    argument(
        "QUEUE", "scope/queue, or the queue alone in the default scope.", autocompletion=complete_queues
    ),
]
MessageId = Annotated[str, argument("ID", "The message's id.", autocompletion=complete_messages)]
ScopeOption = Annotated[
    str | None, option("NAME", "Only of this scope.", "--scope", autocompletion=complete_scopes)
]
LimitOption = Annotated[int, option("N", "At most so many, up to 1000. Default 50.", "--limit")]
CursorOption = Annotated[str | None, option("N", "Go on where a listing ended.", "--cursor")]
StoreOption = Annotated[
    str | None,
    option(
        "URL",
        "The store: sqlite:///path/to/file.db. Else POSTROOM_STORE, else store.url of the settings, else"
        " POSTROOM_HOME/postroom.db.",
        "--store",
        panel="Everywhere",
    ),
]
JsonOption = Annotated[bool, flag("Answer in JSON, for scripts.", "--json", panel="Everywhere")]
