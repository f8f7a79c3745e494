"""What the shell offers after Tab: names that exist in the store. An error here offers nothing."""

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
