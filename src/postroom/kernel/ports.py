"""What the kernel asks of a store. Each store keeps these promises in its own way.

A transaction commits whole or not at all. Several may run at once on a server store; then `row`, `pending`
and `due` lock what they return until the end (skipping what others hold, for `pending` and `due`). Events are
handed over as drafts: the store gives them their numbers in one order that never changes, at once or shortly
after the commit, and a reader is shown only numbered events, without gaps. No two processes may be assumed to
share memory, and no sequence number may be assumed to become visible in order.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from postroom.kernel.budgets.model import Budget, BudgetReads, BudgetWrites
from postroom.kernel.ledger import Event, EventDraft, Folded, Head
from postroom.kernel.model import Counts, Document, Position, Queue, Record, Schema, Scope, Subscription
from postroom.kernel.rows import Content, Row, Stored
from postroom.kernel.service_ports import ServiceReads, ServiceWrites


class RecordHead(msgspec.Struct, frozen=True):
    """A record without what it says."""

    number: int
    tenant: str
    key: str
    created_at: int


class HousekeeperRun(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    last_run_at: int | None
    last_status: str
    last_duration_us: int
    items_processed: int
    total_items: int
    runs: int
    last_error: str | None


class Transaction(ServiceWrites, BudgetWrites, Protocol):
    """Reads see this transaction's own writes."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Undo everything since its start when its block raises. The context has more to undo: ask it."""
        ...

    def last_time(self) -> int:
        """The newest time any event of this store carries, so that time never goes back."""
        ...

    # places
    def places_stamp(self) -> object | None:
        """An object that is another one after any scope or queue has changed; None when that is not known."""
        ...

    def scope(self, tenant: str, slug: str) -> Scope | None: ...
    def scope_by_id(self, scope_id: int) -> Scope: ...
    def insert_scope(self, scope: Scope) -> int: ...
    def update_scope(self, scope: Scope) -> None: ...
    def delete_scope(self, scope_id: int) -> None: ...
    def queue(self, tenant: str, scope: str, slug: str) -> Queue | None: ...
    def queue_by_id(self, queue_id: int) -> Queue: ...
    def queues_of(self, scope_id: int) -> list[Queue]: ...
    def insert_queue(self, queue: Queue) -> int: ...
    def update_queue(self, queue: Queue) -> None: ...
    def delete_queue(self, queue_id: int) -> None: ...

    # messages
    def insert(self, rows: Sequence[Row], contents: Sequence[Content]) -> None: ...
    def insert_alike(
        self, row: Row, content: Content, ids: Sequence[str], bodies: Sequence[bytes | None]
    ) -> None:
        """New rows like this one but for their ids and bodies; each its own conversation if it has none."""
        ...

    def save(self, rows: Sequence[Row]) -> None:
        """Write back what may change of a row that stays in its queue; identity and content never do."""
        ...

    def save_claimed(self, rows: Sequence[Row]) -> None:
        """As `save`, of rows that were pending and have been claimed."""
        ...

    def save_completed(self, rows: Sequence[Row]) -> None:
        """As `save`, of rows that were claimed and have been completed."""
        ...

    def relocate(self, rows: Sequence[Row]) -> None:
        """As `save`, and also its queue, its line and where it came from."""
        ...

    def row(self, message_id: str) -> Row | None: ...
    def rows(self, message_ids: Sequence[str]) -> list[Row]:
        """Those of these messages that are live, in any order; ids that cannot be are ignored."""
        ...

    def content(self, row: Row) -> Content: ...
    def archived(self, message_id: str) -> Stored | None: ...
    def by_key(self, queue_id: int, idempotency_key: str) -> Stored | None:
        """The message published to this queue with this key, live or archived."""
        ...

    def pending(self, line: int, limit: int) -> list[Stored]:
        """The next messages of a line, in order."""
        ...

    def due(self, now: int, limit: int) -> list[Row]:
        """Rows whose `due_at` has come, earliest first."""
        ...

    def next_due(self) -> int | None: ...
    def open_rows(self, queue_id: int, after_seq: int, limit: int) -> list[Row]:
        """Pending, delayed and claimed rows of a queue, deliveries included, by seq."""
        ...

    def rows_in_state(self, queue_id: int, state: str, limit: int) -> list[Row]:
        """Rows of one state in a queue, in the order of entry."""
        ...

    def originals(self, queue_id: int) -> list[Stored]:
        """Broadcast messages of a queue (not their deliveries), in the order of entry."""
        ...

    def open_deliveries(self, parent_id: str) -> int: ...
    def deliveries(self, parent_id: str) -> list[Row]:
        """The deliveries of a broadcast message that are still open."""
        ...

    def open_of(self, tenant: str, correlation_id: str) -> list[Row]:
        """Pending, delayed and claimed rows of a conversation, deliveries included, in the order of entry."""
        ...

    def on_line(self, line: int) -> list[Row]:
        """Pending and delayed rows of a line, in the order of entry."""
        ...

    def ended_in(self, queue_id: int, limit: int) -> list[Row]:
        """Terminal rows that are in this queue."""
        ...

    def dead_from(self, queue_id: int) -> int:
        """How many dead letters came from this queue."""
        ...

    def count(self, queue_id: int, subscription_id: int, state: str, delta: int) -> None: ...
    def counts(self, queue_id: int, subscription_id: int = 0) -> Counts: ...

    # subscriptions, schemas, records, positions
    def subscriptions(self, queue_id: int) -> list[Subscription]: ...
    def insert_subscription(self, subscription: Subscription) -> int: ...
    def delete_subscription(self, subscription_id: int) -> None: ...
    def seen(self, subscription_id: int, key: str, now: int) -> bool:
        """Whether the key was there already; it is there afterwards."""
        ...

    def schema(self, scope_id: int, name: str, version: int | None) -> Schema | None: ...
    def insert_schema(self, scope_id: int, schema: Schema) -> None: ...
    def insert_record(
        self,
        tenant: str,
        kind: str,
        key: str,
        data: str,
        correlation_id: str | None,
        message_id: str | None,
        now: int,
    ) -> int:
        """The number of the record; later ones have higher numbers."""
        ...

    def document(self, tenant: str, kind: str, key: str) -> Document | None:
        """Also one that is gone, for its version goes on."""
        ...

    def save_document(self, tenant: str, document: Document) -> None: ...
    def set_position(self, position: Position) -> None: ...
    def positions(self) -> list[Position]: ...

    # ledger
    def append(self, event: EventDraft) -> None: ...
    def head_seq(self) -> int:
        """The number of the last event that is committed and numbered: no reader has seen a later one."""
        ...

    # housekeeping
    def aging(self, entered_before: int, cap: int, after_seq: int, limit: int) -> list[Row]:
        """Pending rows of priority queues that entered before, with a score below the cap, by seq."""
        ...

    def finished(self, before: int, limit: int) -> list[Row]:
        """Terminal rows (not dead ones) that ended before."""
        ...

    def dead_before(self, before: int, limit: int) -> list[Row]:
        """Dead letters that ended before."""
        ...

    def archive(self, rows: Sequence[Row]) -> None:
        """Move these rows with their content to the archive."""
        ...

    def prunable(self, queue_id: int, ended_before: int, up_to_seq: int | None, limit: int) -> list[str]:
        """Ids of archived messages that ended before, and whose events all lie within `up_to_seq`.

        Not those of a conversation that has open messages: their work may still ask for them.
        """
        ...

    def prune_archive(self, message_ids: Sequence[str]) -> int:
        """Also the keys that were kept for them, and how they stood at the anchor."""
        ...

    def prune_ledger(self, before: int, up_to_seq: int | None, limit: int) -> int:
        """Drop the oldest events, before a time and not past `up_to_seq`; the chain stays verifiable.

        What they told of messages and accounts that are still there is kept: a fold begins with it.
        """
        ...

    def time_of(self, seq: int) -> int:
        """The time of a numbered event, or of the last before it that is known; 0 before the first."""
        ...

    def record_kinds(self) -> list[str]:
        """Every kind there are records of, of any tenant."""
        ...

    def old_records(self, kind: str, after: int, before: int, limit: int) -> list[RecordHead]:
        """Records of a kind made before a time, of any tenant, by number, after a number."""
        ...

    def has_newer_record(self, tenant: str, kind: str, key: str, number: int) -> bool: ...
    def drop_records(self, numbers: Sequence[int]) -> int:
        """Those of them that are not the newest of all, whose number must not be given again."""
        ...

    def prune_audit(self, before: int, limit: int) -> int: ...
    def untouched_documents(
        self, kind: str, after: tuple[int, str, str], before: int, limit: int
    ) -> list[tuple[str, Document]]:
        """Documents of a kind that were last changed before, with their tenants, oldest first.

        Only those after a moment, and of that moment itself after a tenant and a key.
        """
        ...

    def prune_documents(self, before: int, limit: int) -> int:
        """Forget documents that are gone since before; how often they changed is still counted."""
        ...

    def prune_places(self, limit: int) -> int:
        """Forget deleted queues, and scopes without any, to which no message belongs; how many queues."""
        ...

    def prune_notes(self, leaders_before: int, positions_before: int, limit: int) -> int:
        """Forget leaderships that ended, and positions without a hold that nobody set since."""
        ...

    def prune_seen(self, before: int, limit: int) -> int: ...
    def all_queues(self, *, deleted: bool = False) -> list[Queue]:
        """Every queue of every tenant; also those deleted, whose archive is still there, when asked."""
        ...

    def report_run(self, run: HousekeeperRun) -> None: ...
    def run_of(self, name: str) -> HousekeeperRun | None: ...
    def lead(self, name: str, holder: str, now: int, until: int) -> bool: ...
    def end_leaderships(self, holder: str, now: int) -> int:
        """Of a holder, and of those whose names begin with it and a slash."""
        ...

    def claimed_by(self, holder: str, limit: int) -> list[Row]:
        """Claimed rows of a holder, and of those whose names begin with it and a slash, by their lease."""
        ...

    def memo(self, name: str) -> str | None:
        """A small note a housekeeper keeps between its runs."""
        ...

    def set_memo(self, name: str, value: str) -> None: ...


class MessageFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which messages to list; everything given must hold. `queue` is a whole path, `scope/queue`."""

    tenant: str = "default"
    scope: str | None = None
    queue: str | None = None
    states: tuple[str, ...] = ()
    message_type: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    parent_id: str | None = None
    agent: str | None = None
    channel: str | None = None
    sender_id: str | None = None
    subscription: str | None = None
    deliveries: bool = False
    labels: tuple[tuple[str, Any], ...] = ()
    created_after: int | None = None
    created_before: int | None = None
    newest_first: bool = False
    queue_ids: tuple[int, ...] | None = None
    """Only what lies in these queues; None: in any."""
    reviews: bool = False
    """Only what asks a person."""


class Reader(ServiceReads, BudgetReads, Protocol):
    """Reads of what is committed; they never wait for writers."""

    def get(self, message_id: str) -> Stored | None: ...
    def page(self, wanted: MessageFilter, after: int | None, limit: int) -> list[Stored]:
        """Live and archived messages in the order of entry, after (newest first: before) a seq.

        Deliveries of broadcasts are shown only when asked for, or when they are dead letters.
        """
        ...

    def peek(self, line: int, limit: int) -> list[Stored]: ...
    def scope(self, tenant: str, slug: str) -> Scope | None: ...
    def scopes(self, tenant: str) -> list[Scope]: ...
    def queue(self, tenant: str, scope: str, slug: str) -> Queue | None: ...
    def queues(self, tenant: str, scope: str | None) -> list[Queue]: ...
    def queue_names(self) -> dict[int, tuple[str, str]]: ...
    def counts(self, queue_id: int, subscription_id: int = 0) -> Counts: ...
    def subscriptions(self, queue_id: int) -> list[Subscription]: ...
    def subscription_names(self) -> dict[int, str]: ...
    def schemas(self, tenant: str, scope: str) -> list[Schema]: ...
    def records(self, tenant: str, kind: str, key: str | None, after: int, limit: int) -> list[Record]: ...
    def latest_record(self, tenant: str, kind: str, key: str) -> Record | None: ...
    def record(self, tenant: str, number: int) -> Record | None: ...
    def document(self, tenant: str, kind: str, key: str) -> Document | None:
        """Also one that is gone."""
        ...

    def documents(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Document]:
        """Those that are there, by key, after a key; `prefix` is how their keys begin."""
        ...

    def document_changes(self, tenant: str, kind: str) -> int:
        """How often documents of a kind have been changed, ever: the sum of their versions."""
        ...

    def positions(self) -> list[Position]: ...
    def housekeepers(self) -> list[HousekeeperRun]: ...
    def leader(self, name: str, now: int) -> str | None: ...
    def next_due(self) -> int | None: ...
    def events(self, after: int, limit: int) -> list[Event]:
        """Numbered events after a position, in order, without a gap."""
        ...

    def head(self) -> Head: ...
    def anchor(self) -> Head:
        """Where the kept part of the ledger begins; the genesis unless events were pruned."""
        ...

    def folded(self) -> dict[str, Folded]:
        """The present state of every message, live and archived, as a fold of the ledger should give it."""
        ...

    def standing(self) -> tuple[dict[str, Folded], dict[tuple[str, str], Budget]]:
        """How messages and accounts stood at the anchor, where a fold of the kept events begins."""
        ...


class Store(Protocol):
    """One place to keep everything. `begin`, `commit` and `rollback` are called by one thread at a time."""

    def begin(self) -> Transaction: ...
    def commit(self, tx: Transaction) -> None: ...
    def rollback(self, tx: Transaction) -> None: ...
    def explain(self, error: Exception) -> Exception:
        """An error of the store's own library as the named error that a person can act on."""
        ...

    def reader(self) -> AbstractContextManager[Reader]: ...
    def left_behind(self, owner: str) -> str | None:
        """Say who owns the store from now on. Answers with who did, if that process surely died with it open;
        None where several may have it open, or where it was closed."""
        ...

    def close(self) -> None: ...
