"""`postroom import`: take over an office that TinyAGI or TinyClaw kept."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.options import argument, flag
from postroom.terminal.cli.output import Column, TextTable, table
from postroom.terminal.cli.store_access import CommandContext

if TYPE_CHECKING:
    from postroom.office.imports.importer import ImportReport

app = group("import", "Take over an office that another program kept. Its files stay as they are.")

Folder = Annotated[str | None, argument("DIR", "Its home folder. Default ~/.tinyagi or ~/.tinyclaw.")]
DryRun = Annotated[bool, flag("Only tell what would be taken over.", "--dry-run")]


async def _import(at: CommandContext, kind: str, folder: str | None, *, dry_run: bool, yes: bool) -> None:
    where = _absolute(folder) if folder else None
    async with at.office(patience_s=None) as office:
        if dry_run or not yes:
            plan = await office.imports.run(at.caller, kind, where, dry_run=True)
            if dry_run or not at.out.as_json:
                at.out.show(msgspec.to_builtins(plan), *_render_plan(plan))
        if dry_run:
            return
        if not yes:
            confirm("Take it over? Nothing there is changed, and what is here already stays as it is.")
        done = await office.imports.run(at.caller, kind, where, dry_run=False)
    rows = [(name, done.moved.get(name, 0), count) for name, count in done.found.items()]
    columns = ["", Column("taken over", right=True), Column("found", right=True)]
    notes = (f"note: {note}" for note in done.notes)
    at.out.show(msgspec.to_builtins(done), table(columns, rows), *notes)


def _absolute(folder: str) -> str:
    """A server that runs is in another folder than whoever types this."""
    return str(Path(folder).expanduser().absolute())


def _render_plan(plan: "ImportReport") -> Iterator[str | TextTable]:
    yield f"{plan.source} holds:"
    yield table(["", Column("found", right=True)], list(plan.found.items()))
    new = [*(f"@{agent}" for agent in plan.agents), *(f"#{team}" for team in plan.teams)]
    yield f"New here would be {', '.join(new)}." if new else "No agent or team would be new here."
    yield from (f"note: {note}" for note in plan.notes)


@command(
    app,
    "tinyagi",
    store=False,
    examples=["postroom import tinyagi --dry-run", "postroom import tinyagi /mnt/old/.tinyagi --yes"],
)
async def tinyagi(
    at: CommandContext, folder: Folder = None, dry_run: DryRun = False, yes: Yes = False
) -> None:
    """Take over a TinyAGI: settings, agents, teams, mail, history, pairings, schedules, tasks."""
    await _import(at, "tinyagi", folder, dry_run=dry_run, yes=yes)


@command(app, "tinyclaw", store=False, examples=["postroom import tinyclaw --dry-run"])
async def tinyclaw(
    at: CommandContext, folder: Folder = None, dry_run: DryRun = False, yes: Yes = False
) -> None:
    """Take over a TinyClaw, as TinyAGI was called before."""
    await _import(at, "tinyclaw", folder, dry_run=dry_run, yes=yes)
