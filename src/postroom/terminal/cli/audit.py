"""`postroom audit`: who called what over HTTP, and whether they were allowed to."""

from typing import Annotated, Any

import msgspec

from postroom.clock import iso
from postroom.kernel import jsontext
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.options import flag, option
from postroom.terminal.cli.output import Column, ago, table
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.cli.values import When

app = group("audit", "The audit: every gated call over HTTP, allowed or refused.")


@command(
    app,
    "list",
    examples=[
        "postroom audit list --scope orders",
        "postroom audit list --refused --since 1d",
        "postroom audit list --correlation-id order-17 --json",
    ],
)
async def list_audit(
    at: CommandContext,
    scope: Annotated[str | None, option("NAME", "Only of this scope.", "--scope")] = None,
    event: Annotated[
        str | None, option("NAME", "Only this kind of call, like message.claim.", "--event")
    ] = None,
    actor: Annotated[str | None, option("ID", "Only calls of this key.", "--actor")] = None,
    correlation_id: Annotated[
        str | None, option("TEXT", "Only of this conversation.", "--correlation-id")
    ] = None,
    refused: Annotated[bool, flag("Only what was refused.", "--refused")] = False,
    since: Annotated[When | None, option("TIME", "From then on, or the last 2h, 7d.", "--since")] = None,
    tenant: Annotated[str, option("NAME", "The tenant. Default default.", "--tenant")] = "default",
    limit: Annotated[int, option("N", "At most so many. Default 50.", "--limit")] = 50,
) -> None:
    """List calls, newest first."""
    now = at.clock.now()
    async with at.services() as services:
        page = await services.audit.list_page(
            at.caller.of_tenant(tenant),
            scope,
            limit=limit,
            event_type=event,
            actor_id=actor,
            correlation_id=correlation_id,
            allowed=False if refused else None,
            since=since.before(now) if since else None,
        )
    found, scopes = page.entries, page.scopes
    shown: list[dict[str, Any]] = []
    for entry in found:
        document = msgspec.to_builtins(entry)
        del document["queue_id"]
        document["scope"] = scopes.get(document.pop("scope_id"))
        document["details"] = jsontext.decode(entry.details)
        document["created_at"] = iso(entry.created_at)
        shown.append(document)
    rows = [
        (
            ago(entry.created_at, now),
            scopes.get(entry.scope_id),
            entry.event_type,
            f"{entry.actor_type}:{entry.actor_id}",
            "yes" if entry.allowed else "no",
            entry.status,
            entry.message_id,
        )
        for entry in found
    ]
    titles = ["when", "scope", "call", "by", "allowed", Column("status", right=True), "message"]
    at.out.show(shown, table(titles, rows) if rows else "There are no calls like that.")
