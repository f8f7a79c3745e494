"""`postroom erase`: take a person's data out of the room, with proof that it was done."""

from typing import Annotated

import msgspec
import typer

from postroom.clock import iso
from postroom.kernel.erasure.subject import Subject
from postroom.terminal.cli.command import command
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.output import facts, json_text, some
from postroom.terminal.cli.store_access import CommandContext


def register(app: typer.Typer, panel: str) -> None:
    command(
        app,
        "erase",
        panel=panel,
        examples=[
            "postroom erase labels.customer_id 4711 --scope orders --dry-run",
            "postroom erase body.email ann@example.com --scope orders --redact",
        ],
    )(erase)


async def erase(
    at: CommandContext,
    field: Annotated[str, argument("FIELD", "labels.<name>, body.<path>, sender_id, source_id …")],
    value: Annotated[str, argument("VALUE", "The value that stands for the person.")],
    scope: Annotated[str, option("NAME", "The scope. Default default.", "--scope")] = "default",
    redact: Annotated[bool, flag("Take out the value alone, not the whole message.", "--redact")] = False,
    dry_run: Annotated[bool, flag("Only count.", "--dry-run")] = False,
    yes: Yes = False,
) -> None:
    """Erase what the hot store holds about a person; ids and times stay, and the ledger keeps the proof.

    What somebody works on at the moment waits: run the command again later.
    """
    subject, mode = Subject(field=field, value=value), "redact" if redact else "erase"
    async with at.services(change=True) as services:
        job = await services.erasures.count(at.caller, scope, subject, mode=mode, dry_run=dry_run)
        if not dry_run:
            if job.found and not yes:
                confirm(f"{some(job.found, 'message')} will be erased for good. Go on?")
            job = await services.erasures.erase(at.caller, scope, subject, mode=mode)
    document = msgspec.to_builtins(job)
    for name in ("scope_id", "subject", "queue_ids"):
        del document[name]
    for name in ("created_at", "completed_at"):
        document[name] = iso(document[name]) if document[name] is not None else None
    shown = {**document, "proof": json_text(job.proof) if job.proof else None}
    at.out.show(document, facts((name.replace("_", " "), value) for name, value in shown.items()))
