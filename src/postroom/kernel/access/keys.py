"""API keys: shown once, kept only as a hash, bound to a tenant and perhaps a scope, expiring, replaceable.

A key is long and random, so a plain SHA-256 of it can neither be guessed nor looked up.
"""

import hashlib
import secrets
from typing import Any

import msgspec

from postroom.kernel import service_commands
from postroom.kernel.access.permissions import Permission

KIND = "api_key"
HASHES = "api_key_hash"
# Hashes are looked up before the tenant is known, so they belong to none.
NOBODY = ""
PREFIX = "prk_"
SECRET_BYTES = 32


class Key(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    tenant: str
    name: str
    hint: str
    digest: str
    permissions: tuple[Permission, ...] = ()
    role: str | None = None
    scope_id: int = 0
    user_id: str | None = None
    groups: tuple[str, ...] = ()
    partner: str | None = None
    actor_type: str = "user"
    created_at: int = 0
    created_by: str = ""
    expires_at: int | None = None
    revoked_at: int | None = None
    rotated_at: int | None = None

    def alive(self, now: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def hint(secret: str) -> str:
    """Enough to recognise a key by, too little to use it."""
    return secret[: len(PREFIX) + 4] + "…"


def read(data: dict[str, Any]) -> Key:
    return msgspec.convert(data, Key)


def written(key: Key) -> dict[str, Any]:
    return msgspec.to_builtins(key)


def new_key(*, key_id: str, tenant: str, name: str, now: int, **more: Any) -> tuple[Key, str]:
    """A key and its secret, which is nowhere else."""
    secret = new_secret()
    made = Key(
        id=key_id,
        tenant=tenant,
        name=name,
        hint=hint(secret),
        digest=hashed(secret),
        created_at=now,
        **more,
    )
    return made, secret


def rotated(key: Key, now: int) -> tuple[Key, str]:
    secret = new_secret()
    return msgspec.structs.replace(key, hint=hint(secret), digest=hashed(secret), rotated_at=now), secret


def kept(key: Key, actor: str) -> service_commands.PutServiceDocument:
    note = {"id": key.id, "name": key.name}
    return service_commands.PutServiceDocument(
        kind=KIND, key=key.id, data=written(key), note=note, actor=actor, tenant=key.tenant
    )


def opens(digest: str, key: Key, actor: str, until: int | None = None) -> service_commands.PutServiceDocument:
    """That a secret opens this key, for ever or until a moment."""
    data = {"tenant": key.tenant, "id": key.id, "until": until}
    return service_commands.PutServiceDocument(kind=HASHES, key=digest, data=data, tenant=NOBODY, actor=actor)
