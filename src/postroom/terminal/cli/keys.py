"""`postroom key`: API keys for programs that use the work queue over HTTP."""

import uuid
from typing import Annotated, Any

import msgspec
import typer

from postroom.clock import iso, micros
from postroom.errors import InvalidField, ScopeNotFound
from postroom.kernel import commands as c
from postroom.kernel.access import keys, permissions
from postroom.kernel.access.keys import Key
from postroom.kernel.access.permissions import ROLE_PERMISSIONS
from postroom.runtime import SyncRoom
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.completion import scopes as complete_scopes
from postroom.terminal.cli.errors import NotKnown, Unclear
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.output import Column, ago, table
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.cli.values import When

app = group("key", "Keys: who may use the work queue over HTTP.")

MOST = 10_000
Tenant = Annotated[str, option("NAME", "The tenant. Default default.", "--tenant")]


def _shown(key: Key, scopes: dict[int, str]) -> dict[str, Any]:
    return {
        "id": key.id,
        "tenant": key.tenant,
        "name": key.name,
        "hint": key.hint,
        "permissions": list(key.permissions),
        "role": key.role,
        "scope": scopes.get(key.scope_id),
        "expires_at": iso(key.expires_at) if key.expires_at else None,
        "revoked_at": iso(key.revoked_at) if key.revoked_at else None,
    }


def _scopes(room: SyncRoom, tenant: str) -> dict[int, str]:
    return {scope.id: scope.slug for scope in room._core.read(lambda reader: reader.scopes(tenant))}


def _all(room: SyncRoom, tenant: str) -> list[Key]:
    found = room._core.read(lambda reader: reader.documents(tenant, keys.KIND, "", "", MOST))
    return sorted((keys.read(document.data) for document in found), key=lambda key: key.created_at)


def _one(room: SyncRoom, tenant: str, key_id: str) -> Key:
    fitting = [key for key in _all(room, tenant) if key.id.startswith(key_id)]
    if not fitting:
        raise NotKnown(what="key", name=key_id, where=f"of the tenant {tenant}", list="postroom key list")
    if len(fitting) > 1:
        raise Unclear(f'There is more than one key "{key_id}" of the tenant {tenant}')
    return fitting[0]


@command(
    app,
    "create",
    examples=[
        "postroom key create shop --permission view --permission publish",
        "postroom key create worker --permission view --permission consume --scope orders --expires 90d",
        "postroom key create admin --role tenant_admin --tenant acme",
    ],
)
def create(
    at: CommandContext,
    name: Annotated[str, argument("NAME", "What the key is for.")],
    permission: Annotated[
        list[str] | None, option("NAME", "view, publish, consume or manage; several times.", "--permission")
    ] = None,
    role: Annotated[str | None, option("NAME", "A role instead, like tenant_admin.", "--role")] = None,
    scope: Annotated[
        str | None, option("NAME", "Only for this scope.", "--scope", autocompletion=complete_scopes)
    ] = None,
    expires: Annotated[
        When | None, option("TIME", "When it ends, or in how long (90d).", "--expires")
    ] = None,
    user: Annotated[str | None, option("NAME", "The user it belongs to.", "--user")] = None,
    tenant: Tenant = "default",
) -> None:
    """Make a key. Its secret is shown now and never again."""
    if not name.strip():
        raise Unclear("A key needs a name that says what it is for")
    wanted = []
    for word in permission or []:
        known = permissions.parsed(word)
        if known is None:
            raise InvalidField("--permission", f"{word!r} is none of {', '.join(permissions.Permission)}")
        wanted.append(known)
    if role is not None and role not in ROLE_PERMISSIONS:
        raise InvalidField("--role", f"{role!r} is none of {', '.join(ROLE_PERMISSIONS)}")
    if not wanted and role is None and user is None:
        raise Unclear("A key needs a --permission, a --role or a --user")
    with at.room(make=True) as room:
        now = at.clock.now()
        scopes = _scopes(room, tenant)
        numbers = {slug: number for number, slug in scopes.items()}
        if scope is not None and scope not in numbers:
            raise ScopeNotFound(scope=scope)
        key, secret = keys.new_key(
            key_id=str(uuid.uuid4()),
            tenant=tenant,
            name=name,
            now=now,
            permissions=tuple(sorted(set(wanted))),
            role=role,
            user_id=user,
            scope_id=numbers[scope] if scope is not None else 0,
            created_by=room.actor,
            expires_at=expires.ahead_of(now) if expires else None,
        )
        steps = (keys.kept(key, room.actor), keys.opens(key.digest, key, room.actor))
        room.run(c.Unit(commands=steps, actor=room.actor, tenant=tenant))
    at.out.show(
        {**_shown(key, scopes), "secret": secret},
        f"The key {key.id} is made. Its secret, shown once:",
        secret,
    )


@command(app, "list", examples=["postroom key list", "postroom key list --tenant acme --json"])
def list_keys(at: CommandContext, tenant: Tenant = "default") -> None:
    """List keys, by what they are recognised by; secrets are kept nowhere."""
    now = at.clock.now()
    with at.looking() as room:
        found, scopes = _all(room, tenant), _scopes(room, tenant)
    rows = [
        (
            key.id,
            key.name,
            key.hint,
            key.role or ", ".join(key.permissions),
            scopes.get(key.scope_id),
            "revoked" if key.revoked_at else "expired" if not key.alive(now) else "good",
            ago(key.created_at, now),
        )
        for key in found
    ]
    titles = [Column("key", whole=True), "name", "begins", "may", "scope", "state", "made"]
    at.out.show(
        [_shown(key, scopes) for key in found], table(titles, rows) if rows else "There are no keys yet."
    )


KeyId = Annotated[str, argument("ID", "The key's id, or how it begins.")]


@command(app, "rotate", examples=["postroom key rotate 3f2a --grace 1h"])
def rotate(
    at: CommandContext,
    key_id: KeyId,
    grace: Annotated[
        float, option("DURATION", "How long the old secret stays good. Default 1h.", "--grace")
    ] = 3600,
    tenant: Tenant = "default",
) -> None:
    """Give a key a new secret; the old one stays good for a while, so that nobody is cut off."""
    with at.room() as room:
        now = at.clock.now()
        key = _one(room, tenant, key_id)
        if not key.alive(now):
            raise Unclear("A key that has ended cannot be rotated; make a new one")
        changed, secret = keys.rotated(key, now)
        steps = (
            keys.kept(changed, room.actor),
            keys.opens(changed.digest, changed, room.actor),
            keys.opens(key.digest, changed, room.actor, now + micros(grace)),
        )
        room.run(c.Unit(commands=steps, actor=room.actor, tenant=tenant))
        scopes = _scopes(room, tenant)
    at.out.show({**_shown(changed, scopes), "secret": secret}, "The new secret, shown once:", secret)


@command(app, "revoke", examples=["postroom key revoke 3f2a"])
def revoke(at: CommandContext, key_id: KeyId, tenant: Tenant = "default") -> None:
    """End a key at once."""
    with at.room() as room:
        key = _one(room, tenant, key_id)
        changed = msgspec.structs.replace(key, revoked_at=key.revoked_at or at.clock.now())
        room.run(keys.kept(changed, room.actor))
        scopes = _scopes(room, tenant)
    at.out.show(_shown(changed, scopes), f"The key {key.id} ({key.name}) opens nothing any more.")


def register(root: typer.Typer, panel: str) -> None:
    root.add_typer(app, rich_help_panel=panel)
