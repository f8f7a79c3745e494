"""What the kernel asks of a store. Each store keeps these promises in its own way.

Every operation takes or gives many things at once, so that a group of callers costs a handful of round trips
however large it is. No two processes may be assumed to share memory, and no number may be assumed to become
visible in order.

- A transaction commits whole or not at all. Several may run at once. What `rows`, `find`, `ready`, `due`,
  `facts` and `budgets` return in one is locked until its end; `ready` and `due` pass over what others hold.
- `begin` tells the time and the version of scopes, queues, subscriptions, rules and schemas. A change of any
  of them waits for transactions that began before it, so what a version told holds until the end.
- Writes may be sent later, but before the next read and before the commit.
- Events are handed over as drafts. The store gives them their numbers in one order that never changes, at
  once or shortly after the commit, and a reader is shown only numbered events, without a gap.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, Literal, Protocol

import msgspec

from postroom.kernel.budgets.model import Budget, BudgetChanges, BudgetFilter, HeldMessage, Holdings
from postroom.kernel.facts import Fact
from postroom.kernel.ledger import Event, EventDraft, Folded, Head
from postroom.kernel.model import Counts, Queue, Scope, Subscription
from postroom.kernel.rows import Content, Row, Stored

MANY = 2**31 - 1

CountKey = tuple[int, int, str]
"""A queue, a subscription of it (0: its own line), and a state."""


class Shape(StrEnum):
    """Which columns of rows have changed, so that a store need not write the others."""

    CLAIMED = "claimed"
    EXTENDED = "extended"
    COMPLETED = "completed"
    CHANGED = "changed"
    """Anything but where it is."""
    MOVED = "moved"
    """Also its queue, scope, line, origin, type, hops and key."""


class RowFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which messages to find; everything given must hold."""

    tenant: str | None = None
    scope_id: int | None = None
    queue_ids: tuple[int, ...] | None = None
    origin_queue_id: int | None = None
    line: int | None = None
    states: tuple[str, ...] = ()
    message_type: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    parent_id: str | None = None
    kind: Literal["any", "original", "delivery", "listed"] = "any"
    """Listed are originals, and deliveries that became dead letters."""
    subscription_ids: tuple[int, ...] | None = None
    claimed_by: str | None = None
    """A holder, and those whose names begin with it and a slash."""
    created_after: int | None = None
    created_before: int | None = None
    ended_before: int | None = None
    score_below: int | None = None
    agent: str | None = None
    channel: str | None = None
    sender_id: str | None = None
    labels: tuple[tuple[str, Any], ...] = ()
    reviews: bool = False
    """Only what asks a person."""
    newest_first: bool = False


class MessageFilter(RowFilter, frozen=True, kw_only=True):
    """A filter as callers say it, with names. `queue` is a whole path, `scope/queue`."""

    tenant: str | None = "default"
    scope: str | None = None
    queue: str | None = None
    subscription: str | None = None
    deliveries: bool = False


class ScopeFilter(msgspec.Struct, frozen=True, kw_only=True):
    """By number (also deleted ones), or of a tenant by name, or all of a tenant after a number."""

    ids: tuple[int, ...] | None = None
    tenant: str | None = None
    slug: str | None = None
    after: int = 0


class QueueFilter(msgspec.Struct, frozen=True, kw_only=True):
    """By number, by name, or all of a tenant, of a scope or of a sort; with `deleted`, also deleted ones.

    `after` is the scope's and the queue's number of the last one seen; of a sort only the queue's counts.
    """

    ids: tuple[int, ...] | None = None
    tenant: str | None = None
    scope: str | None = None
    slug: str | None = None
    scope_id: int | None = None
    sort: Literal["priority", "dead_letter", "retention", "any"] | None = None
    """Those of every tenant that order by priority, hold dead letters, or keep for a time of their own."""
    deleted: bool = False
    after: tuple[int, int] = (0, 0)


class FactFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of a kind by key; or, with `before`, those last changed before a moment, of any tenant, by age.

    `after` is the last key seen; by age it is (updated_at, tenant, key).
    """

    kind: str | None = None
    tenant: str = ""
    prefix: str = ""
    after: str = ""
    gone: bool = False
    before: int | None = None
    after_age: tuple[int, str, str] = (0, "", "")


class RecordFilter(msgspec.Struct, frozen=True, kw_only=True):
    """By number, after a number; or (`after_kind`) by kind, those of kinds that come after one."""

    after_kind: str | None = None
    numbers: tuple[int, ...] | None = None
    tenant: str | None = None
    kind: str | None = None
    key: str | None = None
    after: int = 0
    newest_first: bool = False


class StoredRecord(msgspec.Struct, frozen=True, gc=False):
    """A record as stores keep it. Field order is column order."""

    number: int
    tenant: str
    kind: str
    key: str
    data: str
    correlation_id: str | None
    message_id: str | None
    created_at: int


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
    tenant: str | None
    """None: those of all, for whoever verifies them."""
    scope_id: int | None = None
    event_type: str | None = None
    actor_id: str | None = None
    correlation_id: str | None = None
    message_id: str | None = None
    message_ids: tuple[str, ...] | None = None
    allowed: bool | None = None
    since: int | None = None
    until: int | None = None
    newest_first: bool = True
    queue_ids: tuple[int, ...] | None = None
    """Only what is about these queues, or about none; None: about any."""


# All of it, in the order of entry.
ALL_AUDIT = AuditFilter(tenant=None, newest_first=False)


class Chunk(msgspec.Struct, frozen=True):
    """A part of a stream, by its number."""

    number: int
    data: bytes


class Rewritten(msgspec.Struct, frozen=True):
    """Other content in the place of a message's, live or archived, with what else it said."""

    message_id: str
    content: Content
    result: bytes | None
    failure_reason: str | None
    idempotency_key: str | None = None
    """Another one in the place of its own; None: that stays."""


class NewMessages(msgspec.Struct):
    """Rows with their contents, in the order of entry."""

    rows: list[Row]
    contents: list[Content]


class UniformMessages(msgspec.Struct):
    """Rows that are like one but for their ids and bodies; each its own conversation if that has none."""

    row: Row
    content: Content
    ids: list[str]
    bodies: list[bytes | None]


class PrunedMessage(msgspec.Struct, frozen=True):
    id: str
    queue_id: int
    idempotency_key: str | None


class Due(msgspec.Struct, frozen=True):
    """Rows whose time has come, earliest first; when there are none, when the next comes at the earliest."""

    rows: list[Row]
    next_at: int | None = None


class Chain(msgspec.Struct, frozen=True):
    """Where the kept part of the ledger begins (the genesis unless events were pruned), and where it ends."""

    anchor: Head
    head: Head


class FoldBasis(msgspec.Struct, frozen=True):
    """Where messages and budgets stand."""

    messages: dict[str, Folded]
    budgets: dict[tuple[str, str], Budget]


class Reads(Protocol):
    """What can be asked in a transaction, which sees its own writes, and by readers of what is committed."""

    # messages
    def rows(self, message_ids: Sequence[str]) -> list[Row]:
        """Those of these messages that are live, by number."""
        ...

    def stored(self, message_ids: Sequence[str]) -> list[Stored]:
        """Those of these messages that are there, live or archived, with their contents."""
        ...

    def keyed(self, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], Stored]:
        """Messages by the queue and idempotency key they were published with: live, archived or moved."""
        ...

    def ready(self, lines: Sequence[int], limit: int, labels: Sequence[tuple[str, Any]] = ()) -> list[Stored]:
        """The next pending messages of these lines in order, those of the first line first."""
        ...

    def due(self, now: int, limit: int) -> Due: ...
    def find(self, wanted: RowFilter, after: int, limit: int) -> list[Row]:
        """Live rows after a number, in the order of entry; with `ended_before`, in that of their ends."""
        ...

    def unfinished(self, message_ids: Sequence[str]) -> set[str]:
        """Those of these broadcast messages that have open deliveries."""
        ...

    def page(
        self, wanted: RowFilter, after: int | None, limit: int, *, archived: bool = True
    ) -> list[Stored]:
        """Live and archived messages in the order of entry, after (newest first: before) a number."""
        ...

    def counts(self, places: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Counts]:
        """Of queues and subscriptions (0: the queue's own line). In a transaction they are locked."""
        ...

    # scopes, queues, subscriptions
    def scopes(self, wanted: ScopeFilter, limit: int) -> list[Scope]: ...
    def queues(self, wanted: QueueFilter, limit: int) -> list[Queue]: ...
    def subscriptions(
        self, *, queue_ids: Sequence[int] | None = None, ids: Sequence[int] | None = None
    ) -> list[Subscription]:
        """Of queues, or by number, in the order in which they were made."""
        ...

    # facts and records
    def facts(self, keys: Sequence[tuple[str, str, str]]) -> list[Fact]:
        """By tenant, kind and key; also those that are gone."""
        ...

    def scan(self, wanted: FactFilter, limit: int) -> list[Fact]: ...
    def changes(self, tenant: str, kind: str) -> int:
        """The sum of the versions of all facts of a kind that are not forgotten."""
        ...

    def records(self, wanted: RecordFilter, limit: int) -> list[StoredRecord]: ...

    def superseded(self, numbers: Sequence[int]) -> set[int]:
        """Those records for whose tenant, kind and key there is a newer one."""
        ...

    # the ledger
    def events(self, after: int, limit: int) -> list[Event]:
        """Numbered events after a position, in order, without a gap."""
        ...

    def events_about(self, tenant: str, correlation_id: str, first: int, end: int, limit: int) -> list[Event]:
        """Events of a conversation from a number to before another, in order."""
        ...

    def chain(self) -> Chain: ...
    def standing(self, *, at_anchor: bool) -> FoldBasis:
        """What a fold of the kept events begins with; or, as the tables have it now, what it must give."""
        ...

    # audit, streams, budgets
    def audit(self, wanted: AuditFilter, after: str | None, limit: int) -> list[AuditEntry]:
        """A page of entries, after the one with this id; of all tenants, from the first if it is gone."""
        ...

    def chunks(self, stream_id: str, after: int, limit: int) -> list[Chunk]:
        """Parts whose number is above `after`, in order."""
        ...

    def budgets(self, wanted: BudgetFilter, now: int) -> list[Budget]:
        """By name. In a transaction a name that is not there yet is locked too: of two, one makes it."""
        ...

    def holdings(self, tenant: str, holder: str, prefix: str | None = None) -> Holdings:
        """What a holder has reserved, and those whose names begin with a prefix; whether it has settled."""
        ...

    def holds(self, tenant: str, budget: str) -> list[HeldMessage]:
        """Messages held for a budget, in the order of holding."""
        ...


class Transaction(Reads, Protocol):
    """One unit of writing. `now` is its time, `version` that of what processes remember."""

    now: int
    version: int
    woken: Mapping[int, int]
    """On which lines messages became claimable, and how many: the commit tells other processes."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Undo everything since its start when its block raises."""
        ...

    # messages
    def insert(self, batches: Sequence[NewMessages | UniformMessages]) -> list[tuple[int, str]]:
        """New messages; `seq` of their rows is set. Answers with keys somebody else has used meanwhile."""
        ...

    def update(self, rows: Sequence[Row], shape: Shape) -> None: ...
    def rewrite(self, messages: Sequence[Rewritten], *, wipe: bool = False) -> None:
        """With `wipe`, nothing of what they said may remain in the store's files."""
        ...

    def archive(self, rows: Sequence[Row]) -> None:
        """Move these rows with their content to the archive; all their events are appended already."""
        ...

    def prune_messages(
        self, queue_ids: Sequence[int], ended_before: int, up_to_seq: int | None, limit: int
    ) -> list[PrunedMessage]:
        """Drop archived messages that ended before, and whose events all lie within `up_to_seq`.

        Not those of a conversation that has open messages: their work may still ask for them.
        """
        ...

    def add_counts(self, deltas: Mapping[CountKey, int]) -> None: ...

    # the ledger
    def append(self, events: Sequence[EventDraft]) -> None: ...
    def prune_ledger(self, before: int, up_to_seq: int | None, limit: int) -> int:
        """Drop the oldest events, before a time and not past `up_to_seq`; the chain stays verifiable.

        What they told of messages and budgets that are still there is kept: a fold begins with it.
        """
        ...

    # scopes, queues, subscriptions: a number of 0 is a new one; answers with its number
    def save_scope(self, scope: Scope, *, deleted: bool = False) -> int: ...
    def save_queue(self, queue: Queue, *, deleted: bool = False) -> int: ...
    def save_subscription(self, subscription: Subscription, *, deleted: bool = False) -> int: ...
    def prune_queues(self, limit: int) -> list[Queue]:
        """Forget deleted queues, and scopes without any, to which no message belongs."""
        ...

    # facts and records
    def put_facts(self, facts: Sequence[tuple[Fact, int]]) -> None:
        """Each in the place of the version that is expected to be there; 0: of none."""
        ...

    def drop_facts(self, keys: Sequence[tuple[str, str, str]]) -> None: ...
    def number_records(self, count: int) -> int:
        """The first of so many numbers that no record has; later ones are higher."""
        ...

    def add_records(self, records: Sequence[StoredRecord]) -> None: ...
    def drop_records(self, numbers: Sequence[int]) -> int:
        """Those of them that are not the newest of all, whose number must not be given again."""
        ...

    def forget(self, tenant: str, message_ids: Sequence[str]) -> None:
        """Empty the data of records and the details of audit entries about these messages."""
        ...

    # audit, streams, budgets
    def add_audit(self, entries: Sequence[AuditEntry]) -> None: ...
    def prune_audit(self, before: int, limit: int) -> int: ...
    def add_chunks(self, stream_id: str, chunks: Sequence[Chunk]) -> None: ...
    def drop_chunks(self, stream_ids: Sequence[str]) -> None: ...
    def save_budgets(self, changes: BudgetChanges) -> None: ...
    def prune_budgets(
        self, unused_since: int | None, settled_before: int, limit: int
    ) -> tuple[int, list[tuple[str, str]]]:
        """Forget settlements, reservations and holds that ended before, and budgets nobody touched since.

        Not budgets that are frozen and not final. How many of the first, and tenants and names of the others.
        """
        ...


class StoreFault(StrEnum):
    """What to do about an error of a store's own library."""

    RETRY = "retry"
    """It may work when tried again: a deadlock, a lost connection, a server that restarts."""
    DUPLICATE = "duplicate"
    """Somebody else made the same thing in this moment; tried again, it is found."""
    FINAL = "final"


class StoreCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What the runtime must know of a store. With several writers, transactions run side by side."""

    writers: int = 1
    blocking: bool = False
    """Statements wait for a network, so they never run on an event loop."""
    reads_inline: bool = False
    """A small read may run on an event loop: it waits for no writer and for no network."""
    compares_tokens: bool = False
    """A completion is written only if the claim is still the message's: its row need not be read before."""


class Store(Protocol):
    """One place to keep everything."""

    capabilities: StoreCapabilities

    def begin(self) -> Transaction: ...
    def commit(self, tx: Transaction) -> None:
        """Raises only when nothing of it is in the store, or when that cannot be told (then it is final): a
        store that has lost its connection meanwhile looks first what became of it."""
        ...

    def rollback(self, tx: Transaction) -> None: ...
    def reader(self) -> AbstractContextManager[Reads]:
        """Reads of what is committed, in one snapshot; they never wait for writers."""
        ...

    def wipe_log(self) -> None:
        """Let nothing of what was overwritten stay in a log of the store's own beside it."""
        ...

    def listen(self, wake: Callable[[Mapping[int, int]], None]) -> None:
        """Have it called, from any thread, when other processes have committed something: with the lines on
        which messages became claimable, and how many. A call that is missed costs time only, since who waits
        looks again now and then."""
        ...

    def classify(self, error: Exception) -> tuple[StoreFault, Exception]:
        """What an error of the store's library asks for, and the named error that a person can act on."""
        ...

    def left_behind(self, owner: str) -> str | None:
        """Say who owns the store from now on. Answers with who did, if that process surely died with it open;
        None where several may have it open, or where it was closed."""
        ...

    def close(self) -> None: ...
