"""`postroom scope`: namespaces of queues."""

from typing import Annotated

from postroom.kernel.model import LifecycleState, Scope
from postroom.runtime import SyncRoom
from postroom.terminal.cli import documents
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.completion import scopes as complete_scopes
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.output import Column, table
from postroom.terminal.cli.store_access import CommandContext

app = group("scope", "Scopes: namespaces of queues, each with its own dead letters.")

Name = Annotated[str, argument("SCOPE", "The scope's name.", autocompletion=complete_scopes)]
NewName = Annotated[str, argument("SCOPE", "Small letters, digits, - and _; 63 at most.")]


@command(app, "list", examples=["postroom scope list", "postroom scope list --json"])
def list_scopes(at: CommandContext) -> None:
    """List the scopes, with what waits and what died in each."""
    with at.looking() as room:
        found = [(scope, *totals(room, scope)) for scope in room.scopes()]
    at.out.show(
        [
            {**documents.scope(scope), "queues": queues, "open": held, "dead": dead}
            for scope, queues, held, dead in found
        ],
        table(
            [
                "scope",
                "state",
                Column("queues", right=True),
                Column("open", right=True),
                Column("dead", right=True),
                Column("about", free=True),
            ],
            [
                (scope.slug, scope.state, queues, held, dead, scope.description)
                for scope, queues, held, dead in found
            ],
        ),
    )


def totals(room: SyncRoom, scope: Scope) -> tuple[int, int, int]:
    queues = room.queues(scope.slug)
    counts = [room.counts(queue.path) for queue in queues]
    own = sum(not queue.system for queue in queues)
    return own, sum(count.open for count in counts), sum(count.dead for count in counts)


@command(
    app,
    "create",
    examples=[
        "postroom scope create billing",
        'postroom scope create billing --description "Invoices and dunning"',
    ],
)
def create(
    at: CommandContext,
    scope: NewName,
    description: Annotated[str, option("TEXT", "What it is for.", "--description")] = "",
    display_name: Annotated[str, option("TEXT", "How people call it.", "--display-name")] = "",
    exist_ok: Annotated[bool, flag("No error when it exists already.", "--exist-ok")] = False,
) -> None:
    """Create a scope with its system queues."""
    with at.room(make=True) as room:
        made = room.create_scope(scope, display_name=display_name, description=description, exist_ok=exist_ok)
    at.out.show(documents.scope(made), f'The scope "{made.slug}" is {made.state}.')


@command(app, "pause", examples=["postroom scope pause billing"])
def pause(at: CommandContext, scope: Name) -> None:
    """Take no new messages and hand none out, until it is resumed."""
    _change(at, scope, LifecycleState.PAUSED)


@command(app, "resume", examples=["postroom scope resume billing"])
def resume(at: CommandContext, scope: Name) -> None:
    """Open a paused scope again."""
    _change(at, scope, LifecycleState.ACTIVE)


@command(app, "archive", examples=["postroom scope archive billing"])
def archive(at: CommandContext, scope: Name) -> None:
    """Close a scope but keep everything in it."""
    _change(at, scope, LifecycleState.ARCHIVED)


@command(app, "unarchive", examples=["postroom scope unarchive billing"])
def unarchive(at: CommandContext, scope: Name) -> None:
    """Open an archived scope again."""
    _change(at, scope, LifecycleState.ACTIVE)


@command(app, "delete", examples=["postroom scope delete billing"])
def delete(at: CommandContext, scope: Name) -> None:
    """Delete a scope that holds no open messages and no dead letters."""
    with at.room() as room:
        room.delete_scope(scope)
    at.out.show(
        {"deleted": scope}, f'The scope "{scope}" is deleted; what had ended in it stays in the archive.'
    )


def _change(at: CommandContext, scope: str, state: LifecycleState) -> None:
    with at.room() as room:
        changed = room.set_scope_state(scope, state)
    at.out.show(documents.scope(changed), f'The scope "{changed.slug}" is {changed.state}.')
