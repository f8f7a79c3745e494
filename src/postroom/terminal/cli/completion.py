"""What the shell offers after Tab: names of the store and the settings. An error here offers nothing."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import typer

from postroom.errors import PostroomError

if TYPE_CHECKING:
    from postroom.runtime import SyncRoom

NEWEST = 50


@contextlib.contextmanager
def _room(context: typer.Context) -> "Iterator[SyncRoom | None]":
    """The store that is meant, only to read; None when it is not to be had."""
    from postroom.terminal.cli.output import Output
    from postroom.terminal.cli.store_access import CommandContext

    store = context.params.get("store_") or context.find_root().params.get("store_")
    with contextlib.ExitStack() as stack:
        try:
            room = stack.enter_context(CommandContext(store, Output(as_json=True)).looking())
        except PostroomError:
            room = None
        with contextlib.suppress(PostroomError):
            yield room


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def queues(context: typer.Context, incomplete: str) -> list[str]:
    names: list[str] = []
    with _room(context) as room:
        found = room.queues() if room else []
        names = [queue.path for queue in found if not queue.system or incomplete.startswith("_")]
    # Queues of the default scope are also known without it.
    names += [name.removeprefix("default/") for name in names if name.startswith("default/")]
    return _beginning(names, incomplete)


def scopes(context: typer.Context, incomplete: str) -> list[str]:
    names: list[str] = []
    with _room(context) as room:
        names = [scope.slug for scope in room.scopes()] if room else []
    return _beginning(names, incomplete)


def message_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Of the newest messages."""
    return _messages(context, incomplete)


def dead_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Of the newest dead letters."""
    return _messages(context, incomplete, state="dead")


def _messages(context: typer.Context, incomplete: str, **only: Any) -> list[str]:
    ids: list[str] = []
    with _room(context) as room:
        ids = [each.id for each in room.messages(newest_first=True, limit=NEWEST, **only)] if room else []
    return _beginning(ids, incomplete)


def tasks(context: typer.Context, incomplete: str) -> list[str]:
    return _documents(context, incomplete, "task")


def projects(context: typer.Context, incomplete: str) -> list[str]:
    return _documents(context, incomplete, "project", "name")


def schedules(context: typer.Context, incomplete: str) -> list[str]:
    return _documents(context, incomplete, "schedule", "label")


def rules(context: typer.Context, incomplete: str) -> list[str]:
    return _documents(context, incomplete, "rule")


def keys(context: typer.Context, incomplete: str) -> list[str]:
    return _documents(context, incomplete, "api_key")


def _documents(context: typer.Context, incomplete: str, kind: str, name: str | None = None) -> list[str]:
    """Their keys, or what one of their fields says."""
    names: list[str] = []
    with _room(context) as room:
        found = room.documents(kind) if room else []
        names = [each.key.rpartition("/")[2] if name is None else str(each.data.get(name)) for each in found]
    return _beginning(names, incomplete)


def agents(incomplete: str) -> list[str]:
    return _beginning(_settings().get("agents") or {}, incomplete)


def teams(incomplete: str) -> list[str]:
    return _beginning(_settings().get("teams") or {}, incomplete)


def addressees(incomplete: str) -> list[str]:
    return [*agents(incomplete), *teams(incomplete)]


def providers(incomplete: str) -> list[str]:
    from postroom.settings.warnings import PROVIDERS

    own = (f"custom:{name}" for name in _settings().get("custom_providers") or {})
    return _beginning([*sorted(PROVIDERS), *own], incomplete)


def channels(incomplete: str) -> list[str]:
    from postroom.settings.channel_guides import GUIDES

    return _beginning(GUIDES, incomplete)


def settings(incomplete: str) -> list[str]:
    """Names as `settings list` shows them."""
    from postroom.settings.catalog import list_settings

    return _beginning((each.name for each in list_settings({})), incomplete)


def _settings() -> dict[str, Any]:
    """As the file has them: no server is asked, and no office opened."""
    import json

    from postroom.terminal.cli.store_access import home

    try:
        found = json.loads((home() / "settings.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
