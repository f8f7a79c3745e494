"""Options and arguments as all commands declare them, so that help looks the same everywhere."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from postroom.terminal.cli import completion
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
# What the shell offers for an argument of this name, or for the value of this option.
_OFFERED: dict[str, Callable[..., list[str]]] = {
    "AGENT": completion.agents,
    "AGENT…": completion.agents,
    "AGENT|TEAM": completion.addressees,
    "CHANNEL": completion.channels,
    "PROJECT": completion.projects,
    "PROVIDER": completion.providers,
    "QUEUE": completion.queues,
    "SCOPE": completion.scopes,
    "TASK": completion.tasks,
    "TEAM": completion.teams,
    "--agent": completion.agents,
    "--assign": completion.addressees,
    "--channel": completion.channels,
    "--project": completion.projects,
    "--provider": completion.providers,
    "--queue": completion.queues,
    "--scope": completion.scopes,
}


def option(kind: str, about: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    """An option with a value. Its default is told in words, where there is one."""
    offered = next((_OFFERED[name] for name in names if name in _OFFERED), None)
    settings: dict[str, Any] = {"show_default": False, "autocompletion": offered, **more}
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
    settings: dict[str, Any] = {"autocompletion": _OFFERED.get(name), **more}
    return typer.Argument(metavar=name, help=about, show_default=False, **settings)


QueuePath = Annotated[
    str,
    argument("QUEUE", "scope/queue, or the queue alone in the default scope."),
]
MessageId = Annotated[str, argument("ID", "The message's id.", autocompletion=completion.message_ids)]
ScopeOption = Annotated[str | None, option("NAME", "Only of this scope.", "--scope")]
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
