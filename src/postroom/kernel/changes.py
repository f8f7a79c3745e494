"""What a transaction has gathered and not yet sent to the store; it is sent set by set."""

from collections.abc import Sequence

import msgspec

from postroom.kernel.budgets.model import BudgetChanges
from postroom.kernel.facts import Fact, FactKey
from postroom.kernel.ledger import EventDraft
from postroom.kernel.ports import (
    AuditEntry,
    CountKey,
    NewMessages,
    Shape,
    StoredRecord,
    Transaction,
    UniformMessages,
)
from postroom.kernel.rows import Row


class KeysTaken(Exception):
    """Somebody else has published with the same idempotency key meanwhile; tried again, it is found."""


class Changes(msgspec.Struct, eq=False):
    batches: list[NewMessages | UniformMessages] = []
    rows: dict[str, tuple[Row, Shape]] = {}
    alike: tuple[Sequence[Row], Shape] | None = None
    """Different rows that change in the same way, while nothing else does."""
    events: list[EventDraft] = []
    counts: dict[CountKey, int] = {}
    facts: dict[FactKey, tuple[Fact, int]] = {}
    records: list[StoredRecord] = []
    audit: list[AuditEntry] = []
    _budgets: BudgetChanges | None = None

    def __bool__(self) -> bool:
        return bool(
            self.events
            or self.has_messages
            or self.counts
            or self.facts
            or self.records
            or self.audit
            or self._budgets
        )

    @property
    def has_messages(self) -> bool:
        """New ones, or changes of any."""
        return bool(self.batches or self.alike or self.rows)

    @property
    def budgets(self) -> BudgetChanges:
        """To add to; most transactions have none."""
        if self._budgets is None:
            self._budgets = BudgetChanges()
        return self._budgets

    @property
    def has_budgets(self) -> bool:
        return bool(self._budgets)

    def touch(self, row: Row, shape: Shape) -> None:
        """A row that changes in more than one way is written whole."""
        if self.alike is not None:
            self._note_each()
        known = self.rows.get(row.id)
        if known is not None and known[1] is not shape:
            shape = Shape.MOVED if Shape.MOVED in (shape, known[1]) else Shape.CHANGED
        self.rows[row.id] = (row, shape)

    def touch_all(self, rows: Sequence[Row], shape: Shape) -> None:
        """Different rows that change in the same way."""
        if self.rows or self.alike is not None:
            for row in rows:
                self.touch(row, shape)
        elif rows:
            self.alike = (rows, shape)

    def _note_each(self) -> None:
        assert self.alike is not None
        (rows, shape), self.alike = self.alike, None
        for row in rows:
            self.rows[row.id] = (row, shape)

    def count(self, key: CountKey, delta: int) -> None:
        self.counts[key] = self.counts.get(key, 0) + delta

    def shift(self, queue_id: int, subscription_id: int, before: str, after: str, count: int) -> None:
        """So many rows have gone from one state to another."""
        counts, old, new = (
            self.counts,
            (queue_id, subscription_id, before),
            (queue_id, subscription_id, after),
        )
        counts[old] = counts.get(old, 0) - count
        counts[new] = counts.get(new, 0) + count

    def put(self, fact: Fact, expected: int) -> None:
        """`expected` is the version the store has; 0: none."""
        key = (fact.tenant, fact.kind, fact.key)
        known = self.facts.get(key)
        self.facts[key] = (fact, expected if known is None else known[1])

    def add(self, batch: NewMessages | UniformMessages) -> None:
        """New messages; what comes one by one is sent together."""
        last = self.batches[-1] if self.batches else None
        if isinstance(last, NewMessages) and isinstance(batch, NewMessages):
            last.rows.extend(batch.rows)
            last.contents.extend(batch.contents)
        else:
            self.batches.append(batch)

    def merge(self, later: "Changes") -> None:
        for batch in later.batches:
            self.add(batch)
        if later.alike is not None:
            self.touch_all(*later.alike)
        for row, shape in later.rows.values():
            self.touch(row, shape)
        self.events += later.events
        for key, delta in later.counts.items():
            self.count(key, delta)
        for fact, expected in later.facts.values():
            self.put(fact, expected)
        self.records += later.records
        self.audit += later.audit
        if later._budgets:
            self.budgets.add(later._budgets)

    def send(self, tx: Transaction) -> None:
        """Nothing of it remains here. What goes row by row goes first: the rest can go with the commit."""
        if self.events:
            tx.append(self.events)
            self.events = []
        if self.batches:
            batches, self.batches = self.batches, []
            if tx.insert(batches):
                raise KeysTaken
        if self.alike is not None:
            (rows, shape), self.alike = self.alike, None
            tx.update(rows, shape)
        if self.rows:
            touched, self.rows = self.rows, {}
            by_shape: dict[Shape, list[Row]] = {}
            for row, shape in touched.values():
                by_shape.setdefault(shape, []).append(row)
            for shape, rows in by_shape.items():
                tx.update(rows, shape)
        if self.facts:
            tx.put_facts(list(self.facts.values()))
            self.facts = {}
        if self.records:
            tx.add_records(self.records)
            self.records = []
        if self.audit:
            tx.add_audit(self.audit)
            self.audit = []
        if self._budgets:
            tx.save_budgets(self._budgets)
            self._budgets = None
        if self.counts:
            tx.add_counts(self.counts)
            self.counts = {}
