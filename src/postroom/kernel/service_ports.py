"""What the work-queue service keeps beside messages and documents: the audit, parts of streams, moved keys.

Also the rare changes of a message that only rules and erasure make.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from postroom.kernel.model import Document
from postroom.kernel.rows import Content, Row, Stored

# The most rules of one scope. A scope that has more from before is not cut: all of them are tried.
MOST_RULES = 200
ALL_DOCUMENTS = 2**31 - 1


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One gated call: who wanted what, whether it was allowed, about what. Field order is column order."""

    id: str
    tenant: str
    scope_id: int
    queue_id: int
    message_id: str | None
    correlation_id: str | None
    event_type: str
    permission: str
    allowed: bool
    status: int
    actor_type: str
    actor_id: str
    request_id: str
    details: str
    created_at: int


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    tenant: str
    scope_id: int | None = None
    event_type: str | None = None
    actor_id: str | None = None
    correlation_id: str | None = None
    message_id: str | None = None
    allowed: bool | None = None
    since: int | None = None
    until: int | None = None
    newest_first: bool = True
    queue_ids: tuple[int, ...] | None = None
    """Only what is about these queues, or about none; None: about any."""


class Chunk(msgspec.Struct, frozen=True):
    """A part of a stream, by its number."""

    number: int
    data: bytes


class ServiceLookups(Protocol):
    """What can be asked in a transaction and by a reader."""

    def documents(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Document]:
        """Those that are there, by key, after a key; `prefix` is how their keys begin."""
        ...

    def chunks(self, stream_id: str, after: int, limit: int) -> list[Chunk]:
        """Parts whose number is above `after`, in order."""
        ...


class ServiceWrites(ServiceLookups, Protocol):
    """What a transaction can do."""

    def ruled_scopes(self) -> frozenset[int]:
        """Scopes that have at least one rule; asked at every transaction, so it must cost nothing."""
        ...

    def rules_of(self, tenant: str, scope_id: int) -> Sequence[Document]:
        """The rules of a scope, remembered between transactions until `forget_rules`."""
        ...

    def forget_rules(self) -> None:
        """A rule has changed."""
        ...

    def add_audit(self, entries: Sequence[AuditEntry]) -> None: ...
    def add_chunk(self, stream_id: str, chunk: Chunk) -> bool:
        """False when there is a part with this number already."""
        ...

    def delete_chunks(self, stream_id: str) -> None: ...
    def pending_labelled(self, line: int, labels: Sequence[tuple[str, Any]], limit: int) -> list[Stored]:
        """As `pending`, only messages that carry all these labels."""
        ...

    def reroute(self, row: Row) -> None:
        """As `relocate`, and also its scope, type, hops and idempotency key."""
        ...

    def keep_key(self, queue_id: int, idempotency_key: str, message_id: str) -> None:
        """Remember which message a key was used for in a queue that the message has left."""
        ...

    def kept_key(self, queue_id: int, idempotency_key: str) -> str | None: ...
    def rewrite(
        self, message_id: str, content: Content, *, result: bytes | None, failure_reason: str | None
    ) -> None:
        """Put other content in the place of a message's, live or archived."""
        ...

    def erasable(self, tenant: str, scope_id: int | None, after: int, limit: int) -> list[Stored]:
        """Messages live and archived, deliveries too, by seq; the caller looks for the subject in them."""
        ...

    def forget_audit(self, tenant: str, message_ids: Sequence[str]) -> int:
        """Empty the details of audit entries about these messages."""
        ...

    def forget_records(self, tenant: str, message_ids: Sequence[str]) -> int:
        """Empty the data of records that are about these messages."""
        ...


class ServiceReads(ServiceLookups, Protocol):
    def audit(self, wanted: AuditFilter, after: str | None, limit: int) -> list[AuditEntry]:
        """A page of entries, after the one with this id."""
        ...

    def events_about(self, tenant: str, correlation_id: str, since: int, until: int, limit: int) -> list[Any]:
        """Ledger events of a conversation within a span of time, in order."""
        ...
