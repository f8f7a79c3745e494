"""What the shell offers after Tab: names of the store and the settings. An error here offers nothing."""

from typing import TYPE_CHECKING

import typer

from postroom.errors import PostroomError

if TYPE_CHECKING:
    from postroom.terminal.cli.store_access import CommandContext


def _entrance(context: typer.Context) -> "CommandContext":
    from postroom.terminal.cli.output import Output
    from postroom.terminal.cli.store_access import CommandContext

    root = context.find_root()
    store = context.params.get("store_") or root.params.get("store_")
    return CommandContext(store, Output(as_json=True))


def queues(context: typer.Context, incomplete: str) -> list[str]:
    try:
        with _entrance(context).looking() as room:
            found = room.queues()
    except PostroomError:
        return []
    names = [queue.path for queue in found if not queue.system or incomplete.startswith("_")]
    # Queues of the default scope are also known without it.
    names += [name.removeprefix("default/") for name in names if name.startswith("default/")]
    return [name for name in names if name.startswith(incomplete)]


def scopes(context: typer.Context, incomplete: str) -> list[str]:
    try:
        with _entrance(context).looking() as room:
            found = room.scopes()
    except PostroomError:
        return []
    return [scope.slug for scope in found if scope.slug.startswith(incomplete)]


def agents(incomplete: str) -> list[str]:
    return [name for name in _office_names()[0] if name.startswith(incomplete)]


def teams(incomplete: str) -> list[str]:
    return [name for name in _office_names()[1] if name.startswith(incomplete)]


def addressees(incomplete: str) -> list[str]:
    return [*agents(incomplete), *teams(incomplete)]


def settings(incomplete: str) -> list[str]:
    """Names as `settings list` shows them."""
    from postroom.settings.catalog import list_settings

    return [each.name for each in list_settings({}) if each.name.startswith(incomplete)]


def message_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Of the newest messages."""
    try:
        with _entrance(context).looking() as room:
            found = room.messages(newest_first=True, limit=50)
    except PostroomError:
        return []
    return [message.id for message in found if message.id.startswith(incomplete)]


def _office_names() -> tuple[list[str], list[str]]:
    """Agents and teams as the file of settings names them: no server is asked, and no office opened."""
    import json

    from postroom.terminal.cli.store_access import home

    try:
        found = json.loads((home() / "settings.json").read_text("utf-8"))
        return sorted(found.get("agents") or {}), sorted(found.get("teams") or {})
    except (OSError, ValueError, AttributeError, TypeError):
        return [], []
