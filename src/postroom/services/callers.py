"""Who asks: one class for everybody, whichever entrance they came through, with what they may do."""

from enum import StrEnum

import msgspec

from postroom.kernel.access.keys import Key
from postroom.kernel.access.permissions import ADMINS, ALL, Permission, Role
from postroom.kernel.checks import DEFAULT_SCOPE

DEFAULT_TENANT = "default"
OWNER_TYPE = "house"
OWNER_ACTOR = "house:owner"


class CallerKind(StrEnum):
    OWNER = "owner"
    BROWSER = "browser"
    LOCAL = "local"
    PERSON = "person"
    KEY = "key"
    AGENT = "agent"


OWNERS = frozenset({CallerKind.OWNER, CallerKind.BROWSER, CallerKind.LOCAL})


class PersonRole(StrEnum):
    """What somebody may do who was let in by the owner: look, or take part. The owner may everything."""

    MEMBER = "member"
    VIEWER = "viewer"


PERSON_PERMISSIONS = {
    PersonRole.MEMBER: frozenset({Permission.VIEW, Permission.PUBLISH, Permission.CONSUME}),
    PersonRole.VIEWER: frozenset({Permission.VIEW}),
}
AGENT_PERMISSIONS = frozenset({Permission.VIEW, Permission.PUBLISH, Permission.CONSUME})


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """`actor` is how the ledger and claims name them. What comes with a `request_id` is kept in the audit."""

    kind: CallerKind
    name: str
    actor: str
    tenant: str = DEFAULT_TENANT
    permissions: frozenset[Permission] = ALL
    role: str | None = None
    key: Key | None = None
    user_id: str | None = None
    source_type: str = "user"
    turn: str = ""
    """The message an agent works on."""
    request_id: str = ""

    @property
    def is_owner(self) -> bool:
        return self.kind in OWNERS

    @property
    def may_look(self) -> bool:
        """Into the office: its mail, its people and what waits."""
        return self.is_owner or self.kind is CallerKind.PERSON

    @property
    def takes_part(self) -> bool:
        return self.is_owner or (self.kind is CallerKind.PERSON and Permission.PUBLISH in self.permissions)

    @property
    def is_at_shell(self) -> bool:
        """The owner at this machine, whom nothing but the room itself bounds."""
        return self.is_owner and not self.request_id

    @property
    def is_admin(self) -> bool:
        """Access lists do not hold them back."""
        return self.is_owner or (self.kind is CallerKind.KEY and self.role in ADMINS)

    @property
    def scope_id(self) -> int:
        """The one scope a key is bound to; 0 for all others."""
        return self.key.scope_id if self.key is not None else 0

    @property
    def scope(self) -> str | None:
        """The only scope they may work in, by its name; None: whichever lists and keys let them into."""
        return DEFAULT_SCOPE if self.kind is CallerKind.AGENT else None

    @property
    def type(self) -> str:
        """As the audit and access lists name their kind."""
        if self.kind is CallerKind.KEY:
            return "api_key"
        if self.kind is CallerKind.PERSON:
            return "user"
        return "agent" if self.kind is CallerKind.AGENT else OWNER_TYPE

    @property
    def id(self) -> str:
        if self.key is not None:
            return self.key.id
        return self.name if self.kind in (CallerKind.AGENT, CallerKind.PERSON) else "owner"

    @property
    def author(self) -> str:
        """As messages name who wrote them."""
        if self.user_id is not None:
            return self.user_id
        return self.actor if self.is_owner and self.actor != OWNER_ACTOR else self.id

    def sign_claim(self, worker: str | None) -> str:
        """Who claims, with the worker's own name beside it. The owner at the shell may name anybody."""
        if self.is_at_shell:
            return worker or self.actor
        return f"{self.actor}#{worker}" if worker else self.actor

    @property
    def principals(self) -> frozenset[tuple[str, str]]:
        """Everything an access list may know them as."""
        found = {(self.type, self.id)}
        if self.role is not None:
            found.add(("role", self.role))
        if self.user_id is not None:
            found.add(("user", self.user_id))
        if self.key is not None:
            found |= {("group", group) for group in self.key.groups}
        return frozenset(found)

    @property
    def acts_as(self) -> tuple[tuple[str, str], ...] | None:
        """For what acts later in their name: whom lists must let in then; None: lists do not hold it back."""
        return None if self.is_admin else tuple(sorted(self.principals))

    def of_tenant(self, tenant: str) -> "Caller":
        return msgspec.structs.replace(self, tenant=tenant)

    def with_request(self, request_id: str) -> "Caller":
        return msgspec.structs.replace(self, request_id=request_id)


def owner(
    tenant: str = DEFAULT_TENANT, *, kind: CallerKind = CallerKind.OWNER, name: str = "owner", actor: str = ""
) -> Caller:
    """The owner: by token, logged in with a browser, or at the shell (`actor` names them)."""
    return Caller(kind=kind, name=name, actor=actor or OWNER_ACTOR, tenant=tenant, role=Role.SUPER_ADMIN)


def person(name: str, role: PersonRole) -> Caller:
    """Somebody whom the owner has let in, by a link."""
    return Caller(
        kind=CallerKind.PERSON,
        name=name,
        actor=f"user:{name}",
        permissions=PERSON_PERMISSIONS[role],
        user_id=name,
    )


def agent(name: str, turn: str = "") -> Caller:
    return Caller(
        kind=CallerKind.AGENT,
        name=name,
        actor=name,
        permissions=AGENT_PERMISSIONS,
        source_type="agent",
        turn=turn,
    )


def key_holder(key: Key, permissions: frozenset[Permission]) -> Caller:
    return Caller(
        kind=CallerKind.KEY,
        name=f"api_key:{key.id}",
        actor=f"api_key:{key.id}",
        tenant=key.tenant,
        permissions=permissions,
        role=key.role,
        key=key,
        user_id=key.user_id,
        source_type=key.actor_type,
    )
