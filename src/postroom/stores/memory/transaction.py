"""A transaction of the memory store: it writes to the tables at once, and the journal can take it back."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from postroom.kernel.ledger import EventDraft
from postroom.kernel.model import Counts, Document, Position, Queue, Schema, Scope, Subscription
from postroom.kernel.ports import HousekeeperRun, RecordHead
from postroom.kernel.rows import Content, Row, Stored
from postroom.kernel.states import OPEN, TERMINAL, WAITING
from postroom.stores.memory.audit import MemoryServiceWrites
from postroom.stores.memory.budgets import MemoryBudgetWrites
from postroom.stores.memory.tables import Tables


class MemoryTransaction(MemoryBudgetWrites, MemoryServiceWrites):
    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._places = tables.places
        self._messages = tables.messages
        self._notes = tables.notes
        self._accounts = tables.accounts
        self._chain = tables.chain
        self._filing = tables.filing
        self._documents = tables.documents
        self._journal = tables.journal
        self._drafts: list[EventDraft] = []

    def commit(self) -> None:
        # Sealing can fail (a text that cannot be encoded); until it is done, everything can be taken back.
        self._chain.seal(self._drafts)
        self._drafts = []
        self._journal.forget()

    def rollback(self) -> None:
        self._drafts = []
        self._journal.undo_to(0)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        mark, events = self._journal.mark(), len(self._drafts)
        try:
            yield
        except BaseException:
            self._journal.undo_to(mark)
            del self._drafts[events:]
            raise

    def last_time(self) -> int:
        return self._drafts[-1].time if self._drafts else self._chain.head.time

    # places

    def places_stamp(self) -> object | None:
        return None

    def scope(self, tenant: str, slug: str) -> Scope | None:
        return self._places.scope(tenant, slug)

    def scope_by_id(self, scope_id: int) -> Scope:
        return self._places.scope_by_id(scope_id)

    def insert_scope(self, scope: Scope) -> int:
        return self._places.insert_scope(scope)

    def update_scope(self, scope: Scope) -> None:
        self._places.update_scope(scope)

    def delete_scope(self, scope_id: int) -> None:
        self._places.delete_scope(scope_id)

    def queue(self, tenant: str, scope: str, slug: str) -> Queue | None:
        return self._places.queue(tenant, scope, slug)

    def queue_by_id(self, queue_id: int) -> Queue:
        return self._places.queue_by_id(queue_id)

    def queues_of(self, scope_id: int) -> list[Queue]:
        return self._places.queues_of(scope_id)

    def insert_queue(self, queue: Queue) -> int:
        return self._places.insert_queue(queue)

    def update_queue(self, queue: Queue) -> None:
        self._places.update_queue(queue)

    def delete_queue(self, queue_id: int) -> None:
        self._places.delete_queue(queue_id)

    def all_queues(self, *, deleted: bool = False) -> list[Queue]:
        return self._places.queues(deleted=deleted)

    def count(self, queue_id: int, subscription_id: int, state: str, delta: int) -> None:
        self._places.count(queue_id, subscription_id, state, delta)

    def counts(self, queue_id: int, subscription_id: int = 0) -> Counts:
        return self._places.counts(queue_id, subscription_id)

    # messages

    def insert(self, rows: Sequence[Row], contents: Sequence[Content]) -> None:
        for row, content in zip(rows, contents, strict=True):
            self._messages.insert(row, content)

    def insert_alike(
        self, row: Row, content: Content, ids: Sequence[str], bodies: Sequence[bytes | None]
    ) -> None:
        for message_id, body in zip(ids, bodies, strict=True):
            talk = row.correlation_id or message_id
            self._messages.insert(
                replace(row, id=message_id, correlation_id=talk), replace(content, body=body)
            )

    def save(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._messages.save(row)

    def save_claimed(self, rows: Sequence[Row]) -> None:
        self.save(rows)

    def save_completed(self, rows: Sequence[Row]) -> None:
        self.save(rows)

    def relocate(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._messages.relocate(row)

    def row(self, message_id: str) -> Row | None:
        return self._messages.row(message_id)

    def rows(self, message_ids: Sequence[str]) -> list[Row]:
        found = (self._messages.row(message_id) for message_id in dict.fromkeys(message_ids))
        return [row for row in found if row is not None]

    def content(self, row: Row) -> Content:
        return self._messages.content(row.id)

    def archived(self, message_id: str) -> Stored | None:
        return self._messages.archived(message_id)

    def by_key(self, queue_id: int, idempotency_key: str) -> Stored | None:
        return self._messages.by_key(queue_id, idempotency_key)

    def pending(self, line: int, limit: int) -> list[Stored]:
        return self._messages.pending(line, limit)

    def due(self, now: int, limit: int) -> list[Row]:
        return self._messages.due(now, limit)

    def next_due(self) -> int | None:
        return self._messages.next_due()

    def open_rows(self, queue_id: int, after_seq: int, limit: int) -> list[Row]:
        return self._messages.in_states(queue_id, OPEN, after_seq=after_seq, limit=limit)

    def rows_in_state(self, queue_id: int, state: str, limit: int) -> list[Row]:
        return self._messages.in_states(queue_id, (state,), limit=limit)

    def originals(self, queue_id: int) -> list[Stored]:
        return self._messages.originals(queue_id)

    def open_deliveries(self, parent_id: str) -> int:
        return sum(1 for _ in self._messages.open_deliveries(parent_id))

    def deliveries(self, parent_id: str) -> list[Row]:
        return self._messages.deliveries(parent_id)

    def open_of(self, tenant: str, correlation_id: str) -> list[Row]:
        return self._messages.open_of(tenant, correlation_id)

    def on_line(self, line: int) -> list[Row]:
        queue_id = self._places.queue_of_line(line)
        if queue_id is None:
            return []
        return [row for row in self._messages.in_states(queue_id, WAITING) if row.line == line]

    def ended_in(self, queue_id: int, limit: int) -> list[Row]:
        return self._messages.in_states(queue_id, TERMINAL, limit=limit)

    def dead_from(self, queue_id: int) -> int:
        return self._messages.dead_from(queue_id)

    # subscriptions, schemas, records, positions

    def subscriptions(self, queue_id: int) -> list[Subscription]:
        return self._places.subscriptions(queue_id)

    def insert_subscription(self, subscription: Subscription) -> int:
        return self._places.insert_subscription(subscription)

    def delete_subscription(self, subscription_id: int) -> None:
        self._places.delete_subscription(subscription_id)
        self._notes.forget_seen(subscription_id)

    def seen(self, subscription_id: int, key: str, now: int) -> bool:
        return self._notes.seen(subscription_id, key, now)

    def schema(self, scope_id: int, name: str, version: int | None) -> Schema | None:
        return self._places.schema(scope_id, name, version)

    def insert_schema(self, scope_id: int, schema: Schema) -> None:
        self._places.insert_schema(scope_id, schema)

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
        return self._notes.insert_record(tenant, kind, key, data, correlation_id, message_id, now)

    def document(self, tenant: str, kind: str, key: str) -> Document | None:
        return self._tables.documents.find(tenant, kind, key)

    def save_document(self, tenant: str, document: Document) -> None:
        self._tables.documents.save(tenant, document)

    def set_position(self, position: Position) -> None:
        self._notes.set_position(position)

    def positions(self) -> list[Position]:
        return self._notes.positions()

    # ledger

    def append(self, event: EventDraft) -> None:
        self._drafts.append(event)

    def head_seq(self) -> int:
        return self._chain.head.seq

    # housekeeping

    def aging(self, entered_before: int, cap: int, after_seq: int, limit: int) -> list[Row]:
        queue_ids = self._places.by_priority()
        return self._messages.aging(queue_ids, entered_before, cap, after_seq, limit)

    def finished(self, before: int, limit: int) -> list[Row]:
        return self._messages.finished(before, limit)

    def dead_before(self, before: int, limit: int) -> list[Row]:
        return self._messages.dead_before(before, limit)

    def archive(self, rows: Sequence[Row]) -> None:
        # Events of these messages may still wait in this transaction for their numbers.
        last_event = self._chain.head.seq + len(self._drafts)
        for row in rows:
            self._messages.archive(row.id, last_event)

    def prunable(self, queue_id: int, ended_before: int, up_to_seq: int | None, limit: int) -> list[str]:
        return self._messages.prunable(queue_id, ended_before, up_to_seq, limit)

    def prune_archive(self, message_ids: Sequence[str]) -> int:
        for message_id in message_ids:
            self._filing.forget_keys(message_id)
            self._chain.forget(message_id)
        return sum(self._messages.prune(message_id) for message_id in message_ids)

    def prune_ledger(self, before: int, up_to_seq: int | None, limit: int) -> int:
        return self._chain.prune(before, up_to_seq, limit, self._messages.has)

    def time_of(self, seq: int) -> int:
        return self._chain.time_of(seq)

    def record_kinds(self) -> list[str]:
        return self._notes.record_kinds()

    def old_records(self, kind: str, after: int, before: int, limit: int) -> list[RecordHead]:
        return self._notes.old_records(kind, after, before, limit)

    def has_newer_record(self, tenant: str, kind: str, key: str, number: int) -> bool:
        return self._notes.has_newer_record(tenant, kind, key, number)

    def drop_records(self, numbers: Sequence[int]) -> int:
        return self._notes.drop_records(numbers)

    def prune_audit(self, before: int, limit: int) -> int:
        return self._filing.prune_audit(before, limit)

    def untouched_documents(
        self, kind: str, after: tuple[int, str, str], before: int, limit: int
    ) -> list[tuple[str, Document]]:
        return self._documents.untouched(kind, after, before, limit)

    def prune_documents(self, before: int, limit: int) -> int:
        return self._documents.prune(before, limit)

    def prune_places(self, limit: int) -> int:
        return self._places.prune(self._messages.names, limit)

    def prune_notes(self, leaders_before: int, positions_before: int, limit: int) -> int:
        return self._notes.prune(leaders_before, positions_before)

    def prune_seen(self, before: int, limit: int) -> int:
        return self._notes.prune_seen(before, limit)

    def report_run(self, run: HousekeeperRun) -> None:
        self._notes.report_run(run)

    def run_of(self, name: str) -> HousekeeperRun | None:
        return self._notes.run_of(name)

    def lead(self, name: str, holder: str, now: int, until: int) -> bool:
        return self._notes.lead(name, holder, now, until)

    def end_leaderships(self, holder: str, now: int) -> int:
        return self._notes.end_leaderships(holder, now)

    def claimed_by(self, holder: str, limit: int) -> list[Row]:
        return self._messages.claimed_by(holder, limit)

    def memo(self, name: str) -> str | None:
        return self._notes.memo(name)

    def set_memo(self, name: str, value: str) -> None:
        self._notes.set_memo(name, value)
