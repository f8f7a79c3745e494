"""`postroom key`: API keys for programs that use the work queue over HTTP."""

from typing import Annotated, Any

import typer

from postroom.clock import iso
from postroom.services.callers import Caller
from postroom.services.container import Services
from postroom.services.keys import IssuedKey, KeyDraft, ScopedKey
from postroom.terminal.cli import completion
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.output import Column, ago, table
from postroom.terminal.cli.short_ids import pick
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.cli.values import When

app = group("key", "Keys: who may use the work queue over HTTP.")

Tenant = Annotated[str, option("NAME", "The tenant. Default default.", "--tenant")]


def render_key(found: ScopedKey | IssuedKey) -> dict[str, Any]:
    key = found.key
    return {
        "id": key.id,
        "tenant": key.tenant,
        "name": key.name,
        "hint": key.hint,
        "permissions": list(key.permissions),
        "role": key.role,
        "scope": found.scope,
        "expires_at": iso(key.expires_at) if key.expires_at else None,
        "revoked_at": iso(key.revoked_at) if key.revoked_at else None,
    }


async def _find(services: Services, caller: Caller, key_id: str) -> ScopedKey:
    return pick(await services.keys.list_all(caller), key_id, lambda each: each.key.id, "api key")


@command(
    app,
    "create",
    examples=[
        "postroom key create shop --permission view --permission publish",
        "postroom key create worker --permission view --permission consume --scope orders --expires 90d",
        "postroom key create admin --role tenant_admin --tenant acme",
    ],
)
async def create(
    at: CommandContext,
    name: Annotated[str, argument("NAME", "What the key is for.")],
    permission: Annotated[
        list[str] | None, option("NAME", "view, publish, consume or manage; several times.", "--permission")
    ] = None,
    role: Annotated[str | None, option("NAME", "A role instead, like tenant_admin.", "--role")] = None,
    scope: Annotated[str | None, option("NAME", "Only for this scope.", "--scope")] = None,
    expires: Annotated[
        When | None, option("TIME", "When it ends, or in how long (90d).", "--expires")
    ] = None,
    user: Annotated[str | None, option("NAME", "The user it belongs to.", "--user")] = None,
    tenant: Tenant = "default",
) -> None:
    """Make a key. Its secret is shown now and never again."""
    if not permission and role is None and user is None:
        raise Unclear("A key needs a --permission, a --role or a --user")
    draft = KeyDraft(
        name=name,
        permissions=permission or [],
        role=role,
        user_id=user,
        expires_at=expires.ahead_of(at.clock.now()) if expires else None,
    )
    async with at.services(make=True) as services:
        made = await services.keys.create(at.caller.of_tenant(tenant), draft, scope=scope)
    at.out.show(
        {**render_key(made), "secret": made.secret},
        f"The key {made.key.id} is made. Its secret, shown once:",
        made.secret,
    )


@command(app, "list", examples=["postroom key list", "postroom key list --tenant acme --json"])
async def list_keys(at: CommandContext, tenant: Tenant = "default") -> None:
    """List keys, by what they are recognised by; secrets are kept nowhere."""
    now = at.clock.now()
    async with at.services() as services:
        found = await services.keys.list_all(at.caller.of_tenant(tenant))
    rows = [
        (
            key.id,
            key.name,
            key.hint,
            key.role or ", ".join(key.permissions),
            scope,
            "revoked" if key.revoked_at else "expired" if not key.alive(now) else "good",
            ago(key.created_at, now),
        )
        for key, scope in ((each.key, each.scope) for each in found)
    ]
    titles = [Column("key", whole=True), "name", "begins", "may", "scope", "state", "made"]
    at.out.show(
        [render_key(each) for each in found], table(titles, rows) if rows else "There are no keys yet."
    )


KeyId = Annotated[str, argument("ID", "The key's id, or how it begins.", autocompletion=completion.keys)]


@command(app, "rotate", examples=["postroom key rotate 3f2a --grace 1h"])
async def rotate(
    at: CommandContext,
    key_id: KeyId,
    grace: Annotated[
        float, option("DURATION", "How long the old secret stays good. Default 1h.", "--grace")
    ] = 3600,
    tenant: Tenant = "default",
) -> None:
    """Give a key a new secret; the old one stays good for a while, so that nobody is cut off."""
    caller = at.caller.of_tenant(tenant)
    async with at.services(change=True) as services:
        found = await _find(services, caller, key_id)
        if not found.key.alive(at.clock.now()):
            raise Unclear("A key that has ended cannot be rotated; make a new one")
        made = await services.keys.rotate(caller, found.key.id, grace_s=grace)
    at.out.show({**render_key(made), "secret": made.secret}, "The new secret, shown once:", made.secret)


@command(app, "revoke", examples=["postroom key revoke 3f2a"])
async def revoke(at: CommandContext, key_id: KeyId, tenant: Tenant = "default") -> None:
    """End a key at once."""
    caller = at.caller.of_tenant(tenant)
    async with at.services(change=True) as services:
        found = await services.keys.revoke(caller, (await _find(services, caller, key_id)).key.id)
    key = found.key
    at.out.show(render_key(found), f"The key {key.id} ({key.name}) opens nothing any more.")


def register(root: typer.Typer, panel: str) -> None:
    root.add_typer(app, rich_help_panel=panel)
