"""`postroom scope`: namespaces of queues."""

from typing import Annotated

from postroom.terminal.cli import documents
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.output import Column, table
from postroom.terminal.cli.store_access import CommandContext

app = group("scope", "Scopes: namespaces of queues, each with its own dead letters.")

Name = Annotated[str, argument("SCOPE", "The scope's name.")]
NewName = Annotated[str, argument("SCOPE", "Small letters, digits, - and _; 63 at most.")]


@command(app, "list", examples=["postroom scope list", "postroom scope list --json"])
async def list_scopes(at: CommandContext) -> None:
    """List the scopes, with what waits and what died in each."""
    async with at.services() as services:
        found = await services.scopes.list_totals(at.caller)
    at.out.show(
        [
            {**documents.scope(each.scope), "queues": each.queues, "open": each.open, "dead": each.dead}
            for each in found
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
                (each.scope.slug, each.scope.state, each.queues, each.open, each.dead, each.scope.description)
                for each in found
            ],
        ),
    )


@command(
    app,
    "create",
    examples=[
        "postroom scope create billing",
        'postroom scope create billing --description "Invoices and dunning"',
    ],
)
async def create(
    at: CommandContext,
    scope: NewName,
    description: Annotated[str, option("TEXT", "What it is for.", "--description")] = "",
    display_name: Annotated[str, option("TEXT", "How people call it.", "--display-name")] = "",
    exist_ok: Annotated[bool, flag("No error when it exists already.", "--exist-ok")] = False,
) -> None:
    """Create a scope with its system queues."""
    async with at.services(make=True) as services:
        made = await services.scopes.create(
            at.caller, scope, display_name=display_name, description=description, exist_ok=exist_ok
        )
    at.out.show(documents.scope(made), f'The scope "{made.slug}" is {made.state}.')


@command(app, "pause", examples=["postroom scope pause billing"])
async def pause(at: CommandContext, scope: Name) -> None:
    """Take no new messages and hand none out, until it is resumed."""
    await _change(at, scope, "pause")


@command(app, "resume", examples=["postroom scope resume billing"])
async def resume(at: CommandContext, scope: Name) -> None:
    """Open a paused scope again."""
    await _change(at, scope, "resume")


@command(app, "archive", examples=["postroom scope archive billing"])
async def archive(at: CommandContext, scope: Name) -> None:
    """Close a scope but keep everything in it."""
    await _change(at, scope, "archive")


@command(app, "unarchive", examples=["postroom scope unarchive billing"])
async def unarchive(at: CommandContext, scope: Name) -> None:
    """Open an archived scope again."""
    await _change(at, scope, "unarchive")


@command(app, "delete", examples=["postroom scope delete billing"])
async def delete(at: CommandContext, scope: Name) -> None:
    """Delete a scope that holds no open messages and no dead letters."""
    async with at.services(change=True) as services:
        await services.scopes.delete(at.caller, scope)
    at.out.show(
        {"deleted": scope}, f'The scope "{scope}" is deleted; what had ended in it stays in the archive.'
    )


async def _change(at: CommandContext, scope: str, verb: str) -> None:
    async with at.services(change=True) as services:
        changed = await services.scopes.set_state(at.caller, scope, verb)
    at.out.show(documents.scope(changed), f'The scope "{changed.slug}" is {changed.state}.')
