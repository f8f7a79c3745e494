"""`postroom housekeepers`: who does what nobody asks for, and when it last did."""

from typing import Annotated

import typer

from postroom.kernel.housekeeping.housekeepers import ROSTER
from postroom.terminal.cli import documents
from postroom.terminal.cli.command import command
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import option
from postroom.terminal.cli.output import Column, ago, some, span, table
from postroom.terminal.cli.store_access import CommandContext

NAMES = [keeper.name for keeper in ROSTER]


def register(app: typer.Typer, panel: str) -> None:
    command(
        app,
        "housekeepers",
        panel=panel,
        examples=[
            "postroom housekeepers",
            "postroom housekeepers --run message_archiver",
            "postroom housekeepers --run all",
        ],
    )(housekeepers)


def _names(incomplete: str) -> list[str]:
    return [name for name in (*NAMES, "all") if name.startswith(incomplete)]


async def housekeepers(
    at: CommandContext,
    run: Annotated[
        str | None,
        option("NAME", "Run this one now, or all.", "--run", autocompletion=_names),
    ] = None,
) -> None:
    """List the housekeepers and their last runs, or run one now."""
    if run is not None and run not in (*NAMES, "all"):
        raise Unclear(f'There is no housekeeper "{run}"; there are {", ".join(NAMES)}, and all')
    if run is not None:
        await _run(at, NAMES if run == "all" else [run])
        return
    now = at.clock.now()
    async with at.services() as services:
        found = await services.housekeepers.list_all(at.caller)
    at.out.show(
        [documents.housekeeper(keeper) for keeper in found],
        table(
            [
                "housekeeper",
                "every",
                "last run",
                "went",
                Column("items", right=True),
                Column("what it does", free=True),
            ],
            [
                (
                    keeper.name,
                    span(keeper.every_s),
                    ago(keeper.last_run_at, now) or "never",
                    keeper.last_error if keeper.last_status == "failed" else keeper.last_status,
                    keeper.total_items,
                    keeper.work,
                )
                for keeper in found
            ],
        ),
    )


async def _run(at: CommandContext, names: list[str]) -> None:
    async with at.services(change=True) as services:
        done = {name: await services.housekeepers.run(at.caller, name) for name in names}
        found = await services.housekeepers.list_all(at.caller)
    failed = {each.name: each for each in found if each.last_status == "failed"}
    at.out.show(
        [
            {"name": name, "items": items, "error": failed[name].last_error if name in failed else None}
            for name, items in done.items()
        ],
        *(
            f"{name} failed: {failed[name].last_error}"
            if name in failed
            else f"{name}: {some(items, 'item')}"
            for name, items in done.items()
        ),
    )
    if any(name in failed for name in names):
        raise typer.Exit(1)
