"""Facts: small things a store keeps under a kind and a key, each with a version that counts its changes.

Documents of users are facts of their tenant. What the room itself remembers (how far readers came, who leads,
schemas) are facts of no tenant, under kinds that begin with `postroom:`.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from postroom.kernel import jsontext
from postroom.kernel.model import Document, Position, Schema

T = TypeVar("T")

# The tenant of what belongs to the room itself.
ROOM = ""

POSITION = "postroom:position"
LEADER = "postroom:leader"
MEMO = "postroom:memo"
RUN = "postroom:run"
SEEN = "postroom:seen"
SCHEMA = "postroom:schema"
MOVED_KEY = "postroom:moved_key"
# When a schedule comes next: the key begins with it.
TICK = "postroom:tick"
# How much of a rate was used.
RATE = "postroom:rate"
# A process that has the store open, and when it was last heard of.
PROCESS = "postroom:process"
# Who waits for a message, what a message waits for, and in which scopes messages are waited for.
DEPENDENTS = "postroom:dependents"
WAITING = "postroom:waiting"
AWAITED_SCOPE = "postroom:awaited_scope"
RULE = "rule"

# What processes remember between transactions; a change of one gives the store its next version.
REMEMBERED = frozenset({RULE, SCHEMA, AWAITED_SCOPE})

FactKey = tuple[str, str, str]


class Fact(msgspec.Struct, frozen=True, gc=False):
    """`data` is JSON. One that is gone keeps its version, which goes on when it comes back."""

    tenant: str
    kind: str
    key: str
    version: int
    data: str
    created_at: int
    updated_at: int
    gone: bool = False

    def next(self, data: Any, now: int) -> "Fact":
        return Fact(
            self.tenant, self.kind, self.key, self.version + 1, jsontext.text(data), self.created_at, now
        )


def first(kind: str, key: str, data: Any, now: int, *, tenant: str = ROOM) -> Fact:
    return Fact(tenant, kind, key, 1, jsontext.text(data), now, now)


def to_document(fact: Fact) -> Document:
    return Document(
        kind=fact.kind,
        key=fact.key,
        version=fact.version,
        data=jsontext.decode(fact.data),
        created_at=fact.created_at,
        updated_at=fact.updated_at,
        gone=bool(fact.gone),
    )


def from_document(tenant: str, document: Document) -> Fact:
    return Fact(
        tenant,
        document.kind,
        document.key,
        document.version,
        jsontext.text(document.data),
        document.created_at,
        document.updated_at,
        document.gone,
    )


class HousekeeperRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a housekeeper did last, and in all."""

    name: str
    last_run_at: int | None
    last_status: str
    last_duration_us: int
    items_processed: int
    total_items: int
    runs: int
    last_error: str | None


class Leadership(msgspec.Struct, frozen=True):
    holder: str
    until: int


class _Place(msgspec.Struct, frozen=True):
    seq: int
    hold: bool


def _decoder(kind: type[T]) -> Callable[[str], T]:
    return msgspec.json.Decoder(kind).decode


to_run = _decoder(HousekeeperRun)
to_leadership = _decoder(Leadership)
_to_place = _decoder(_Place)


def to_position(fact: Fact) -> Position:
    place = _to_place(fact.data)
    return Position(name=fact.key, seq=place.seq, hold=place.hold, updated_at=fact.updated_at)


def schema_prefix(scope_id: int, name: str = "") -> str:
    """How keys of schemas begin; versions are padded so that keys sort like them."""
    return f"{scope_id}/{name}@" if name else f"{scope_id}/"


def schema_key(scope_id: int, name: str, version: int) -> str:
    return f"{schema_prefix(scope_id, name)}{version:010}"


def to_schema(fact: Fact, scope: str) -> Schema:
    name, _, version = fact.key.partition("/")[2].rpartition("@")
    return Schema(
        scope=scope,
        name=name,
        version=int(version),
        document=jsontext.decode(fact.data),
        created_at=fact.created_at,
    )


def changes_memo(tenant: str, kind: str) -> str:
    """Where it is counted how often documents of a kind changed that are forgotten."""
    return f"changes:{kind}/{tenant}"
