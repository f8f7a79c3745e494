"""`postroom import`: take over an office that TinyAGI or TinyClaw kept."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from rich.console import RenderableType

from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.office import ask
from postroom.terminal.cli.options import argument, flag
from postroom.terminal.cli.output import Column, table
from postroom.terminal.cli.store_access import CommandContext

app = group("import", "Take over an office that another program kept. Its files stay as they are.")

Folder = Annotated[str | None, argument("DIR", "Its home folder. Default ~/.tinyagi or ~/.tinyclaw.")]
DryRun = Annotated[bool, flag("Only tell what would be taken over.", "--dry-run")]


def _import(at: CommandContext, kind: str, folder: str | None, *, dry_run: bool, yes: bool) -> None:
    body: dict[str, Any] = {"kind": kind}
    if folder:
        # The house that runs is in another folder than whoever types this.
        body["folder"] = str(Path(folder).expanduser().absolute())
    if dry_run or not yes:
        plan = _asked({**body, "dryRun": True})
        if dry_run or not at.out.as_json:
            at.out.show(plan, *_planned(plan))
    if dry_run:
        return
    if not yes:
        confirm("Take it over? Nothing there is changed, and what is here already stays as it is.")
    done = _asked({**body, "dryRun": False})
    rows = [(name, done["moved"].get(name, 0), count) for name, count in done["found"].items()]
    columns = ["", Column("taken over", right=True), Column("found", right=True)]
    at.out.show(done, table(columns, rows), *(f"note: {note}" for note in done["notes"]))


def _asked(body: dict[str, Any]) -> dict[str, Any]:
    return ask(lambda office: office.post("/api/import", body, patience_s=None))


def _planned(plan: dict[str, Any]) -> Iterator[RenderableType]:
    yield f"{plan['source']} holds:"
    yield table(["", Column("found", right=True)], list(plan["found"].items()))
    new = [*(f"@{agent}" for agent in plan["agents"]), *(f"#{team}" for team in plan["teams"])]
    yield f"New here would be {', '.join(new)}." if new else "No agent or team would be new here."
    yield from (f"note: {note}" for note in plan["notes"])


@command(
    app,
    "tinyagi",
    store=False,
    examples=["postroom import tinyagi --dry-run", "postroom import tinyagi /mnt/old/.tinyagi --yes"],
)
def tinyagi(at: CommandContext, folder: Folder = None, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Take over a TinyAGI: settings, agents, teams, mail, history, pairings, schedules, tasks."""
    _import(at, "tinyagi", folder, dry_run=dry_run, yes=yes)


@command(app, "tinyclaw", store=False, examples=["postroom import tinyclaw --dry-run"])
def tinyclaw(at: CommandContext, folder: Folder = None, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Take over a TinyClaw, as TinyAGI was called before."""
    _import(at, "tinyclaw", folder, dry_run=dry_run, yes=yes)
