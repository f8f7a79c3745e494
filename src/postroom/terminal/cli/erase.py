"""`postroom erase`: take a person's data out of the room, with proof that it was done."""

import asyncio
import uuid
from typing import Annotated, Any

import msgspec
import typer

from postroom.clock import iso
from postroom.kernel import commands as c
from postroom.kernel.erasure import subject as erasure
from postroom.kernel.erasure.subject import Subject
from postroom.runtime import SyncRoom
from postroom.services.erasure import Eraser, ErasureJob
from postroom.terminal.cli.command import command
from postroom.terminal.cli.completion import scopes as complete_scopes
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


def erase(
    at: CommandContext,
    field: Annotated[str, argument("FIELD", "labels.<name>, body.<path>, sender_id, source_id …")],
    value: Annotated[str, argument("VALUE", "The value that stands for the person.")],
    scope: Annotated[
        str, option("NAME", "The scope. Default default.", "--scope", autocompletion=complete_scopes)
    ] = "default",
    redact: Annotated[bool, flag("Take out the value alone, not the whole message.", "--redact")] = False,
    dry_run: Annotated[bool, flag("Only count.", "--dry-run")] = False,
    yes: Yes = False,
) -> None:
    """Erase what the hot store holds about a person; ids and times stay, and the ledger keeps the proof.

    What somebody works on at the moment waits: run the command again later.
    """
    subject = Subject(field=field, value=value)
    erasure.check_subject(subject)
    with at.room() as room:
        job = ErasureJob(
            id=str(uuid.uuid4()),
            scope=scope,
            scope_id=room.scope(scope).id,
            subject=subject,
            mode="redact" if redact else "erase",
            dry_run=dry_run,
            created_at=at.clock.now(),
        )
        eraser = Eraser(_running(room), at.clock, {"actor": room.actor, "tenant": room._core.options.tenant})
        job = asyncio.run(eraser.preview(job, keep=False))
        if not dry_run:
            if job.found and not yes:
                confirm(f"{some(job.found, 'message')} will be erased for good. Go on?")
            job = asyncio.run(eraser.execute(job))
    document = msgspec.to_builtins(job)
    for name in ("scope_id", "subject"):
        del document[name]
    for name in ("created_at", "completed_at"):
        document[name] = iso(document[name]) if document[name] is not None else None
    shown = {**document, "proof": json_text(job.proof) if job.proof else None}
    at.out.show(document, facts((name.replace("_", " "), value) for name, value in shown.items()))


def _running(room: SyncRoom) -> Any:
    async def run(command: c.Command) -> Any:
        return room.run(command)

    return run
