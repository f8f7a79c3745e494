"""The unit of work: what one transaction has read, each thing once, and what it is going to write.

Transitions change rows in memory and say so with `touch`; the session sends changes set by set, at the
commit or before a question that they could answer otherwise. A row is one object for the whole transaction.
A savepoint that fails puts rows back as they were, whether or not anything of it was sent.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from postroom.kernel import facts as f
from postroom.kernel.budgets.model import Budget, BudgetChanges, BudgetFilter, HeldMessage, Holdings
from postroom.kernel.changes import Changes
from postroom.kernel.checks import is_text
from postroom.kernel.directory import Directory
from postroom.kernel.facts import Fact, FactKey
from postroom.kernel.ledger import EventDraft
from postroom.kernel.model import Counts, Document, Queue, Schema, Scope, Subscription
from postroom.kernel.ports import (
    MANY,
    AuditEntry,
    Due,
    FactFilter,
    NewMessages,
    QueueFilter,
    Rewritten,
    RowFilter,
    Shape,
    StoredRecord,
    Transaction,
)
from postroom.kernel.rows import ROW_FIELDS, Content, Row, Stored


class _Level:
    """Everything since the start of the transaction, or of one savepoint."""

    __slots__ = ("before", "changes", "directory", "loaded", "opened")

    def __init__(self, directory: Directory) -> None:
        self.changes = Changes()
        self.directory = directory
        self.before: dict[str, Row] = {}
        self.loaded: set[str] = set()
        self.opened: contextlib.ExitStack | None = None


class Session(msgspec.Struct, eq=False):
    tx: Transaction
    directory: Directory
    changes: Changes = msgspec.field(default_factory=Changes)
    """What is gathered at the moment; within a savepoint, since its start."""
    has_news: bool = False
    """Whether anything was sent to the ledger."""
    _outer: list[Changes] = []
    _levels: list[_Level] = []
    _rows: dict[str, Row] = {}
    _contents: dict[str, Content] = {}
    _keyed: dict[tuple[int, str], Stored | None] = {}
    _counted: dict[tuple[int, int], dict[str, int]] = {}
    _facts: dict[FactKey, Fact | None] = {}
    _budgets: dict[tuple[str, str], Budget | None] = {}

    # sending

    def flush(self) -> None:
        """Send what was gathered, each savepoint opened before what it has to undo."""
        if self._levels:
            self._flush_levels(all_savepoints=False)
        else:
            self._send(self.changes)

    def _flush_levels(self, *, all_savepoints: bool) -> None:
        gathered = [*self._outer, self.changes]
        if not all_savepoints:
            while gathered and not gathered[-1]:
                gathered.pop()
        for depth, changes in enumerate(gathered):
            if depth > 0 and self._levels[depth - 1].opened is None:
                opened = self._levels[depth - 1].opened = contextlib.ExitStack()
                opened.enter_context(self.tx.savepoint())
            if changes:
                self._send(changes)

    def _send(self, changes: Changes) -> None:
        if changes.events:
            self.has_news = True
        if self._counted:
            for (queue_id, subscription_id, state), delta in changes.counts.items():
                counted = self._counted.get((queue_id, subscription_id))
                if counted is not None:
                    counted[state] = counted.get(state, 0) + delta
        for key, (fact, _) in changes.facts.items():
            self._facts[key] = fact
        changes.send(self.tx)

    @property
    def direct(self) -> Transaction:
        """The transaction itself, for rare writes; everything gathered is sent before them."""
        if self._levels:
            self._flush_levels(all_savepoints=True)
        else:
            self._send(self.changes)
        return self.tx

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo everything since its start when its block raises. Within it, rows must be asked for anew."""
        level = _Level(self.directory)
        self._outer.append(self.changes)
        self._levels.append(level)
        self.changes = level.changes
        try:
            yield
        except BaseException as error:
            self._levels.pop()
            self.changes = self._outer.pop()
            self._undo(level, error)
            raise
        self._levels.pop()
        self.changes = self._outer.pop()
        if self._levels:
            self._levels[-1].loaded |= level.loaded
        if level.opened is not None:
            level.opened.close()
        self.changes.merge(level.changes)

    def _undo(self, level: _Level, error: BaseException) -> None:
        for message_id, before in level.before.items():
            row = self._rows.get(message_id)
            if row is not None:
                for field in ROW_FIELDS:
                    setattr(row, field, getattr(before, field))
        for message_id in level.loaded:
            self._rows.pop(message_id, None)
        for known in (self._contents, self._keyed, self._counted, self._facts, self._budgets):
            known.clear()
        if level.directory is not self.directory:
            self.directory = Directory()
        if level.opened is not None:
            level.opened.__exit__(type(error), error, error.__traceback__)

    # messages

    def load(self, message_ids: Iterable[str]) -> None:
        """Fetch these together, since they will be asked for one by one."""
        missing = [id_ for id_ in dict.fromkeys(message_ids) if is_text(id_) and id_ not in self._rows]
        if missing:
            self._flush_new()
            self._adopt_all(self.tx.rows(missing))

    def _flush_new(self) -> None:
        """New messages are found only once they are sent."""
        if self.changes.batches or (self._outer and any(outer.batches for outer in self._outer)):
            self.flush()

    def _flush_messages(self) -> None:
        if self.changes.has_messages or (self._outer and any(outer.has_messages for outer in self._outer)):
            self.flush()

    def adopt(self, row: Row) -> Row:
        known = self._rows.get(row.id)
        if known is None:
            known = self._rows[row.id] = row
            if self._levels:
                self._levels[-1].loaded.add(row.id)
        if self._levels:
            self._remember(known)
        return known

    def _adopt_all(self, rows: Iterable[Row]) -> None:
        """Rows that were not known."""
        if self._levels:
            for row in rows:
                self.adopt(row)
        else:
            self._rows |= {row.id: row for row in rows}

    def _remember(self, row: Row) -> None:
        """As it was before whatever the savepoints will do to it."""
        for level in self._levels:
            if row.id not in level.before and row.id not in level.loaded:
                level.before[row.id] = msgspec.structs.replace(row)

    def row(self, message_id: str) -> Row | None:
        """A live message."""
        row = self._rows.get(message_id)
        if row is None:
            self._flush_new()
            found = self.tx.rows((message_id,))
            return self.adopt(found[0]) if found else None
        if self._levels:
            self._remember(row)
        return row

    def content(self, row: Row) -> Content:
        content = self._contents.get(row.id)
        if content is None:
            self._flush_new()
            [stored] = self.tx.stored([row.id])
            content = self._contents[row.id] = stored.content
        return content

    def archived(self, message_id: str) -> Stored | None:
        self._flush_messages()
        return next((stored for stored in self.tx.stored([message_id]) if stored.archived), None)

    def load_keys(self, keys: Iterable[tuple[int, str]]) -> None:
        missing = [key for key in dict.fromkeys(keys) if key not in self._keyed]
        if missing:
            self._flush_new()
            found = self.tx.keyed(missing)
            for key in missing:
                self._keyed[key] = found.get(key)

    def by_key(self, queue_id: int, key: str) -> Stored | None:
        """The message published to this queue with this key before this group; its row as it is now."""
        self.load_keys([(queue_id, key)])
        stored = self._keyed[queue_id, key]
        if stored is not None and not stored.archived:
            stored.row = self.adopt(stored.row)
        return stored

    def ready(self, lines: Sequence[int], limit: int, labels: Sequence[tuple[str, Any]] = ()) -> list[Stored]:
        self._flush_messages()
        found, known = self.tx.ready(lines, limit, labels), self._rows
        for stored in found:
            row = stored.row
            if self._levels or row.id in known:
                stored.row = self.adopt(row)
            else:
                known[row.id] = row
        return found

    def due(self, now: int, limit: int) -> Due:
        self._flush_messages()
        due = self.tx.due(now, limit)
        if not due.rows:
            return due
        return Due([self.adopt(row) for row in due.rows], due.next_at)

    def find(self, wanted: RowFilter, *, after: int = 0, limit: int = MANY) -> list[Row]:
        self._flush_messages()
        return [self.adopt(row) for row in self.tx.find(wanted, after, limit)]

    def unfinished(self, message_ids: Sequence[str]) -> set[str]:
        self._flush_messages()
        return self.tx.unfinished(message_ids)

    def page(self, wanted: RowFilter, *, after: int = 0, limit: int = MANY, archived: bool) -> list[Stored]:
        self._flush_messages()
        found = self.tx.page(wanted, after, limit, archived=archived)
        for stored in found:
            if not stored.archived:
                stored.row = self.adopt(stored.row)
        return found

    def add(self, rows: list[Row], contents: list[Content]) -> None:
        """New messages, in the order of entry. They are known from now on, so that nothing is sent early."""
        self.changes.add(NewMessages([*rows], [*contents]))
        if self._levels:
            self._levels[-1].loaded.update(row.id for row in rows)
        for row, content in zip(rows, contents, strict=True):
            self._rows[row.id] = row
            self._contents[row.id] = content
            if row.idempotency_key is not None:
                queue_id = row.origin_queue_id or row.queue_id
                self._keyed[queue_id, row.idempotency_key] = Stored(row, content)

    def touch(self, row: Row, shape: Shape = Shape.CHANGED) -> None:
        """This row has changed."""
        self.changes.touch(row, shape)

    def rewrite(self, row: Row, content: Content) -> None:
        """Other content in the place of a message's, with the result and the reason its row has now."""
        self.direct.rewrite([Rewritten(row.id, content, row.result, row.failure_reason)])
        self._contents[row.id] = content

    def rewrite_many(self, messages: Sequence[Rewritten]) -> None:
        """The same for many, live or archived, so that nothing of what they said remains."""
        if messages:
            self.direct.rewrite(messages, wipe=True)
        for each in messages:
            self._contents[each.message_id] = each.content
            row = self._rows.get(each.message_id)
            if row is not None:
                row.result, row.failure_reason = each.result, each.failure_reason

    def forget_rows(self, rows: Iterable[Row]) -> None:
        """These are no longer live."""
        for row in rows:
            self._rows.pop(row.id, None)

    # counts

    def counts(self, queue_id: int, subscription_id: int = 0) -> Counts:
        place = (queue_id, subscription_id)
        counted = self._counted.get(place)
        if counted is None:
            found = self.tx.counts([place]).get(place, Counts())
            counted = self._counted[place] = msgspec.structs.asdict(found)
        gathered = [*self._outer, self.changes]
        return Counts(
            **{
                state: n + sum(changes.counts.get((*place, state), 0) for changes in gathered)
                for state, n in counted.items()
            }
        )

    # events, records, audit

    def append(self, event: EventDraft) -> None:
        self.changes.events.append(event)

    def add_record(
        self,
        tenant: str,
        kind: str,
        key: str,
        data: str,
        now: int,
        *,
        correlation_id: str | None = None,
        message_id: str | None = None,
    ) -> int:
        number = self.tx.number_records(1)
        self.changes.records.append(
            StoredRecord(number, tenant, kind, key, data, correlation_id, message_id, now)
        )
        return number

    def add_audit(self, entries: Iterable[AuditEntry]) -> None:
        self.changes.audit.extend(entries)

    # scopes, queues, subscriptions, schemas

    def scope(self, tenant: str, slug: str) -> Scope | None:
        return self.directory.scope(self.tx, tenant, slug)

    def scope_by_id(self, scope_id: int) -> Scope:
        return self.directory.scope_by_id(self.tx, scope_id)

    def queue(self, tenant: str, scope: str, slug: str) -> Queue | None:
        return self.directory.queue(self.tx, tenant, scope, slug)

    def queue_by_id(self, queue_id: int) -> Queue:
        return self.directory.queue_by_id(self.tx, queue_id)

    def find_queue(self, queue_id: int) -> Queue | None:
        """A queue that may be deleted meanwhile."""

        def find() -> Queue | None:
            return next(iter(self.tx.queues(QueueFilter(ids=(queue_id,)), 1)), None)

        return self.directory.note((QueueFilter, queue_id), find)

    def queues_of(self, scope_id: int) -> list[Queue]:
        return self.tx.queues(QueueFilter(scope_id=scope_id), MANY)

    def subscriptions(self, queue_id: int) -> list[Subscription]:
        return self.directory.subscriptions(self.tx, queue_id)

    def schema(self, scope_id: int, name: str, version: int | None) -> Schema | None:
        self._flush_facts()
        return self.directory.schema(self.tx, self.scope_by_id(scope_id), name, version)

    def save_scope(self, scope: Scope, *, deleted: bool = False) -> Scope:
        number = self.direct.save_scope(scope, deleted=deleted)
        self.directory = Directory()
        return msgspec.structs.replace(scope, id=number)

    def save_queue(self, queue: Queue, *, deleted: bool = False) -> Queue:
        number = self.direct.save_queue(queue, deleted=deleted)
        self.directory = Directory()
        return msgspec.structs.replace(queue, id=number)

    def save_subscription(self, subscription: Subscription, *, deleted: bool = False) -> Subscription:
        number = self.direct.save_subscription(subscription, deleted=deleted)
        self.directory = Directory()
        return msgspec.structs.replace(subscription, id=number)

    def prune_queues(self, limit: int) -> list[Queue]:
        pruned = self.direct.prune_queues(limit)
        if pruned:
            self.directory = Directory()
        return pruned

    # facts

    def _flush_facts(self) -> None:
        if any(changes.facts for changes in (*self._outer, self.changes)):
            self.flush()

    def facts(self, keys: Sequence[FactKey]) -> list[Fact]:
        """Those that are there or gone, in the order of the keys."""
        missing = [key for key in keys if self._gathered(key) is None and key not in self._facts]
        if missing:
            self._facts |= dict.fromkeys(missing)
            self._facts |= {(fact.tenant, fact.kind, fact.key): fact for fact in self.tx.facts(missing)}
        found = (self._gathered(key) or self._facts.get(key) for key in keys)
        return [fact for fact in found if fact is not None]

    def _gathered(self, key: FactKey) -> Fact | None:
        for changes in (self.changes, *reversed(self._outer)):
            if key in changes.facts:
                return changes.facts[key][0]
        return None

    def fact(self, kind: str, key: str, *, tenant: str = f.ROOM) -> Fact | None:
        return next(iter(self.facts([(tenant, kind, key)])), None)

    def put(self, fact: Fact) -> None:
        key = (fact.tenant, fact.kind, fact.key)
        if key not in self._facts:
            self.facts([key])
        known = self._facts.get(key)
        self.changes.put(fact, 0 if known is None else known.version)
        if fact.kind in f.REMEMBERED:
            self.directory = Directory()

    def remember(self, kind: str, key: str, data: Any, now: int) -> None:
        """Something the room itself keeps in mind."""
        before = self.fact(kind, key)
        self.put(f.first(kind, key, data, now) if before is None else before.next(data, now))

    def drop_facts(self, keys: Sequence[FactKey]) -> None:
        if keys:
            self.direct.drop_facts(keys)
            self._facts |= dict.fromkeys(keys)

    def scan(self, wanted: FactFilter, limit: int = MANY) -> list[Fact]:
        self._flush_facts()
        found = self.tx.scan(wanted, limit)
        self._facts |= {(fact.tenant, fact.kind, fact.key): fact for fact in found}
        return found

    def document(self, tenant: str, kind: str, key: str) -> Document | None:
        """Also one that is gone, for its version goes on."""
        fact = self.fact(kind, key, tenant=tenant)
        return None if fact is None else f.to_document(fact)

    def put_document(self, tenant: str, document: Document) -> None:
        self.put(f.from_document(tenant, document))

    def documents(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Document]:
        """Those that are there, by key, after a key; `prefix` is how their keys begin."""
        wanted = FactFilter(kind=kind, tenant=tenant, prefix=prefix, after=after)
        return [f.to_document(fact) for fact in self.scan(wanted, limit)]

    # budgets

    def _flush_budgets(self) -> None:
        if any(changes.has_budgets for changes in (*self._outer, self.changes)):
            self.flush()

    def load_budgets(self, tenant: str, names: Iterable[str]) -> None:
        """All at once and in one order, since they are locked."""
        missing = sorted(name for name in set(names) if (tenant, name) not in self._budgets)
        if missing:
            self._flush_budgets()
            found = self.tx.budgets(BudgetFilter(tenant=tenant, names=tuple(missing)), self.tx.now)
            for name in missing:
                self._budgets[tenant, name] = None
            for budget in found:
                self._budgets[tenant, budget.name] = budget

    def budget(self, tenant: str, name: str) -> Budget | None:
        self.load_budgets(tenant, (name,))
        return self._budgets[tenant, name]

    def save_budget(self, tenant: str, budget: Budget) -> None:
        self.changes.budgets.budgets[tenant, budget.name] = budget
        self._budgets[tenant, budget.name] = budget

    def holdings(self, tenant: str, holder: str, prefix: str | None = None) -> Holdings:
        self._flush_budgets()
        return self.tx.holdings(tenant, holder, prefix)

    def holds(self, tenant: str, budget: str) -> list[HeldMessage]:
        self._flush_budgets()
        return self.tx.holds(tenant, budget)

    @property
    def budget_changes(self) -> BudgetChanges:
        """To add to. What is reserved of budgets is then read anew."""
        self._budgets.clear()
        return self.changes.budgets
