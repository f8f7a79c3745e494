"""Questions about what is committed, all answered from one snapshot of a store.

Nothing is read that is not answered with: a queue is found by its name, never among all queues.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from postroom.kernel import facts as f
from postroom.kernel import jsontext
from postroom.kernel.budgets.model import Budget, BudgetFilter
from postroom.kernel.ledger import Event, Folded, Head
from postroom.kernel.model import Counts, Document, Position, Queue, Record, Schema, Scope, Subscription
from postroom.kernel.ports import (
    MANY,
    AuditEntry,
    AuditFilter,
    Chunk,
    FactFilter,
    MessageFilter,
    QueueFilter,
    Reads,
    RecordFilter,
    RowFilter,
    ScopeFilter,
    StoredRecord,
)
from postroom.kernel.rows import Stored
from postroom.kernel.time_steps import KEY, first_at, read_steps, rising_parts

T = TypeVar("T")


class QueueNames(Mapping[int, tuple[str, str]]):
    """Scope and queue by the queue's number, also of deleted ones; each is looked up when it is asked for."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._known: dict[int, tuple[str, str]] = {}

    def __getitem__(self, queue_id: int) -> tuple[str, str]:
        if queue_id not in self._known:
            found = self._reads.queues(QueueFilter(ids=(queue_id,), deleted=True), 1)
            if not found:
                raise KeyError(queue_id)
            self._known[queue_id] = (found[0].scope, found[0].slug)
        return self._known[queue_id]

    def __iter__(self) -> Iterator[int]:
        found = self._reads.queues(QueueFilter(sort="any", deleted=True), MANY)
        self._known |= {queue.id: (queue.scope, queue.slug) for queue in found}
        return iter([queue.id for queue in found])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Reader:
    def __init__(self, reads: Reads) -> None:
        self.reads = reads

    # messages

    def get(self, message_id: str) -> Stored | None:
        return _one(self.reads.stored([message_id]))

    def get_many(self, message_ids: Iterable[str]) -> dict[str, Stored]:
        return {stored.row.id: stored for stored in self.reads.stored(list(message_ids))}

    def page(self, wanted: MessageFilter, after: int | None, limit: int) -> list[Stored]:
        """Live and archived messages in the order of entry, after (newest first: before) a number.

        Deliveries of broadcasts are shown only when asked for, or when they are dead letters.
        """
        found = self._resolve(wanted)
        return [] if found is None else self.reads.page(found, after, limit)

    def _resolve(self, wanted: MessageFilter) -> RowFilter | None:
        """Names as numbers; None when there is nothing of such a name."""
        fields = {name: getattr(wanted, name) for name in RowFilter.__struct_fields__}
        tenant, queue = wanted.tenant or "", None
        if wanted.queue is not None:
            queue = self.queue(tenant, *wanted.queue.split("/", 1))
            if queue is None or (wanted.queue_ids is not None and queue.id not in wanted.queue_ids):
                return None
            fields["queue_ids"] = (queue.id,)
        if wanted.scope is not None:
            scope = self.scope(tenant, wanted.scope)
            if scope is None:
                return None
            fields["scope_id"] = scope.id
        if wanted.subscription is not None:
            queues = self.queues(tenant, wanted.scope) if queue is None else [queue]
            known = self.subscriptions_of(each.id for each in queues)
            fields["subscription_ids"] = tuple(each.id for each in known if each.name == wanted.subscription)
        elif not wanted.deliveries:
            fields["kind"] = "listed"
        return RowFilter(**fields)

    def peek(self, line: int, limit: int) -> list[Stored]:
        return self.reads.ready((line,), limit)

    def next_due(self) -> int | None:
        return self.reads.due(0, 0).next_at

    def counts(self, queue_id: int, subscription_id: int = 0) -> Counts:
        return self.counts_of([(queue_id, subscription_id)])[queue_id, subscription_id]

    def counts_of(self, places: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Counts]:
        """Of queues and subscriptions (0: the queue's own line)."""
        wanted = list(places)
        found = self.reads.counts(wanted)
        return {place: found.get(place) or Counts() for place in wanted}

    # scopes, queues, subscriptions, schemas

    def scope(self, tenant: str, slug: str) -> Scope | None:
        return _one(self.reads.scopes(ScopeFilter(tenant=tenant, slug=slug), 1))

    def scopes(self, tenant: str, after: int = 0, limit: int = MANY) -> list[Scope]:
        return self.reads.scopes(ScopeFilter(tenant=tenant, after=after), limit)

    def queue(self, tenant: str, scope: str, slug: str) -> Queue | None:
        return _one(self.reads.queues(QueueFilter(tenant=tenant, scope=scope, slug=slug), 1))

    def queue_by_id(self, queue_id: int) -> Queue | None:
        return _one(self.reads.queues(QueueFilter(ids=(queue_id,)), 1))

    def queues(
        self, tenant: str, scope: str | None, after: tuple[int, int] = (0, 0), limit: int = MANY
    ) -> list[Queue]:
        """After the scope's and the queue's number of the last one seen."""
        return self.reads.queues(QueueFilter(tenant=tenant, scope=scope, after=after), limit)

    def queue_names(self) -> QueueNames:
        return QueueNames(self.reads)

    def subscriptions(self, queue_id: int) -> list[Subscription]:
        return self.reads.subscriptions(queue_ids=[queue_id])

    def subscriptions_of(self, queue_ids: Iterable[int]) -> list[Subscription]:
        return self.reads.subscriptions(queue_ids=list(queue_ids))

    def subscription_name(self, subscription_id: int) -> str | None:
        found = _one(self.reads.subscriptions(ids=[subscription_id]))
        return None if found is None else found.name

    def schemas(self, tenant: str, scope: str) -> list[Schema]:
        found = self.scope(tenant, scope)
        if found is None:
            return []
        wanted = FactFilter(kind=f.SCHEMA, prefix=f.schema_prefix(found.id))
        schemas = [f.to_schema(fact, scope) for fact in self.reads.scan(wanted, MANY)]
        return sorted(schemas, key=lambda schema: (schema.name, schema.version))

    # facts and records

    def document(self, tenant: str, kind: str, key: str) -> Document | None:
        """Also one that is gone."""
        found = _one(self.reads.facts([(tenant, kind, key)]))
        return None if found is None else f.to_document(found)

    def documents(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Document]:
        """Those that are there, by key, after a key; `prefix` is how their keys begin."""
        wanted = FactFilter(kind=kind, tenant=tenant, prefix=prefix, after=after)
        return [f.to_document(fact) for fact in self.reads.scan(wanted, limit)]

    def document_changes(self, tenant: str, kind: str) -> int:
        """How often documents of a kind have been changed, ever."""
        forgotten = _one(self.reads.facts([(f.ROOM, f.MEMO, f.changes_memo(tenant, kind))]))
        before = 0 if forgotten is None else int(jsontext.decode(forgotten.data))
        return before + self.reads.changes(tenant, kind)

    def records(self, tenant: str, kind: str, key: str | None, after: int, limit: int) -> list[Record]:
        wanted = RecordFilter(tenant=tenant, kind=kind, key=key, after=after)
        return [_record(found) for found in self.reads.records(wanted, limit)]

    def latest_record(self, tenant: str, kind: str, key: str) -> Record | None:
        wanted = RecordFilter(tenant=tenant, kind=kind, key=key, newest_first=True)
        found = _one(self.reads.records(wanted, 1))
        return None if found is None else _record(found)

    def record(self, tenant: str, number: int) -> Record | None:
        found = _one(self.reads.records(RecordFilter(numbers=(number,)), 1))
        return None if found is None or found.tenant != tenant else _record(found)

    def positions(self) -> list[Position]:
        return [f.to_position(fact) for fact in self.reads.scan(FactFilter(kind=f.POSITION), MANY)]

    def housekeepers(self) -> list[f.HousekeeperRun]:
        return [f.to_run(fact.data) for fact in self.reads.scan(FactFilter(kind=f.RUN), MANY)]

    def leader(self, name: str, now: int) -> str | None:
        found = _one(self.reads.facts([(f.ROOM, f.LEADER, name)]))
        known = None if found is None else f.to_leadership(found.data)
        return known.holder if known is not None and known.until > now else None

    # the ledger

    def events(self, after: int, limit: int) -> list[Event]:
        return self.reads.events(after, limit)

    def events_about(
        self, tenant: str, correlation_id: str, since: int, until: int, limit: int
    ) -> list[Event]:
        """Events of a conversation within a span of time, in order."""
        first, end = self.span(since, until)
        return self.reads.events_about(tenant, correlation_id, first, end, limit)

    def span(self, since: int, until: int) -> tuple[int, int]:
        """The numbers, from and to before, of all events between two moments. Where time was set back, also
        of others."""
        parts = self._rising_parts()
        starts = [(first_at(since, *part, self._time_of), part) for part in parts]
        ends = [(first_at(until + 1, *part, self._time_of), part) for part in parts]
        first = min((at for at, (_, end) in starts if at < end), default=parts[-1][1])
        return first, max((at for at, (begin, _) in ends if at > begin), default=first)

    def last_before(self, moment: int) -> int:
        """The number of the last event before a moment; the latest one, where time was set back."""
        starts = [(first_at(moment, *part, self._time_of), part) for part in self._rising_parts()]
        return max((at for at, (_, end) in starts if at < end), default=starts[-1][1][1]) - 1

    def _time_of(self, number: int) -> int | None:
        """Of the event with this number, or the next one there is."""
        found = self.reads.events(number - 1, 1)
        return found[0].time if found else None

    def _rising_parts(self) -> list[tuple[int, int]]:
        steps = read_steps(_one(self.reads.facts([KEY])))
        chain = self.reads.chain()
        return rising_parts(chain.anchor.seq + 1, chain.head.seq + 1, steps)

    def head(self) -> Head:
        return self.reads.chain().head

    def anchor(self) -> Head:
        return self.reads.chain().anchor

    def folded(self) -> dict[str, Folded]:
        """The present state of every message, live and archived, as a fold of the ledger should give it."""
        return self.reads.standing(at_anchor=False).messages

    def standing(self) -> tuple[dict[str, Folded], dict[tuple[str, str], Budget]]:
        """How messages and budgets stood at the anchor, where a fold of the kept events begins."""
        basis = self.reads.standing(at_anchor=True)
        return basis.messages, basis.budgets

    # audit, streams, budgets

    def audit(self, wanted: AuditFilter, after: str | None, limit: int) -> list[AuditEntry]:
        return self.reads.audit(wanted, after, limit)

    def chunks(self, stream_id: str, after: int, limit: int) -> list[Chunk]:
        return self.reads.chunks(stream_id, after, limit)

    def accounts(self, tenant: str, names: Iterable[str], now: int) -> list[Budget]:
        """Those of the names that exist, in any order."""
        return self.reads.budgets(BudgetFilter(tenant=tenant, names=tuple(names)), now)

    def list_accounts(
        self, tenant: str, prefix: str, now: int, *, frozen: bool, after: str, limit: int
    ) -> list[Budget]:
        """Budgets whose names begin so, by name, after a name."""
        wanted = BudgetFilter(tenant=tenant, prefix=prefix, frozen=frozen, after=after, limit=limit)
        return self.reads.budgets(wanted, now)


def _one(found: list[T]) -> T | None:
    return found[0] if found else None


def _record(found: StoredRecord) -> Record:
    return Record(
        id=found.number,
        kind=found.kind,
        key=found.key,
        data=jsontext.decode(found.data),
        created_at=found.created_at,
    )
