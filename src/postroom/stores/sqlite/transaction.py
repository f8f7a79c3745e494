"""Reads and transactions on SQLite.

One process owns the file and one transaction writes at a time, so the writer keeps in memory what it knows:
the end of the chain, the next numbers, counts, and when something comes due.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from postroom.kernel import jsontext
from postroom.kernel.ledger import Chaining, EventDraft, Head
from postroom.kernel.model import Counts
from postroom.kernel.ports import (
    Chain,
    CountKey,
    Due,
    NewMessages,
    Rewritten,
    Shape,
    UniformMessages,
)
from postroom.kernel.rows import CONTENT_FIELDS, Row, Stored
from postroom.stores.sql.budgets import BudgetReads, BudgetWrites
from postroom.stores.sql.facts import FactReads, FactWrites
from postroom.stores.sql.ledger import LedgerReads, LedgerWrites
from postroom.stores.sql.messages import MessageReads, MessageWrites, to_stored
from postroom.stores.sql.queues import QueueReads, QueueWrites
from postroom.stores.sqlite.connection import ReadConnection, WriteConnection
from postroom.stores.sqlite.dialect import DIALECT, SQL

_BODY = CONTENT_FIELDS.index("body")
_astuple = msgspec.structs.astuple
_copy = msgspec.structs.replace
# Later than any moment: nothing comes due.
NEVER = 2**62
MOST_CLAIMED = 10_000
FIGURE_FIELDS, FIGURES_AT_ONCE = 7, 8
MOST_BOUND = FIGURE_FIELDS * FIGURES_AT_ONCE
# One statement for so many rows: what a list bound as JSON would cost is more than the rows.
ADD_FIGURES = [
    SQL["add_figures"].replace("(?, ?, ?, ?, ?, ?, ?)", ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * rows))
    for rows in range(FIGURES_AT_ONCE + 1)
]


class SqliteReads(MessageReads, QueueReads, FactReads, LedgerReads, BudgetReads):
    def __init__(self, db: ReadConnection | WriteConnection) -> None:
        super().__init__(db, SQL, DIALECT)
        self.connection = db

    def ready(self, lines: Sequence[int], limit: int, labels: Sequence[tuple[str, Any]] = ()) -> list[Stored]:
        sql, bound = SQL["ready"], ()
        if labels:
            sql = sql.replace(" ORDER BY", f" AND {DIALECT.labelled()}" * len(labels) + " ORDER BY")
            bound = tuple(value for label in labels for value in DIALECT.bind_label(*label))
        if len(lines) == 1:
            return [to_stored(row) for row in self._db.fetch(sql, (lines[0], *bound, limit))]
        # One statement for each line, in one call; those behind the last row that is wanted are never run.
        bindings = [value for line in lines for value in (line, *bound, limit)]
        found: list[Stored] = []
        for row in self.connection.cursor(";".join([sql] * len(lines)), bindings):
            found.append(to_stored(row))
            if len(found) == limit:
                break
        return found

    def rows(self, message_ids: Sequence[str]) -> list[Row]:
        if len(message_ids) == 1:
            return [Row(*row) for row in self._db.fetch(SQL["row"], message_ids)]
        return super().rows(message_ids)

    def _ids_by_key(self, keys: Sequence[tuple[int, str]]) -> list[tuple[int, str, str]]:
        if len(keys) == 1:
            return self._db.fetch(SQL["keyed_one"], keys[0])
        return self._db.fetch(SQL["keyed"], (jsontext.text(keys),))


class WriterMemory:
    """What the owner of the file knows of what is committed."""

    def __init__(self, db: ReadConnection, version: int) -> None:
        [(seq, hash_, time, message_seq)] = [row[1:] for row in db.fetch(SQL["chain"]) if row[0] == "head"]
        self.head = Head(seq, hash_, time)
        self.message_seq: int = message_seq
        self.version = version
        self.record_seq: int | None = None
        self.next_due = 0
        """Nothing comes due before."""
        self.counts: dict[int, dict[tuple[int, str], int]] = {}
        """By queue; those of a subscription and a state."""
        self.claimed: dict[str, Row] = {}
        """Messages as their claims left them: what comes next is mostly that they are completed."""


class SqliteTransaction(SqliteReads, MessageWrites, QueueWrites, FactWrites, LedgerWrites, BudgetWrites):
    _sql, _dialect = SQL, DIALECT
    _is_renewed = False

    def __init__(self, db: WriteConnection, memory: WriterMemory, now: int) -> None:
        self._db = self._out = self.writer = self.connection = db
        self.memory = memory
        self.now = now
        self.version = memory.version
        self.woken: Mapping[int, int] = {}
        self._head = memory.head
        self._chaining = Chaining(memory.head)
        self._message_seq = memory.message_seq
        self._record_seq = memory.record_seq
        self._next_due = memory.next_due
        self._deltas: dict[CountKey, int] = {}
        self._claimed: dict[str, Row] = {}

    # life

    def finish(self) -> None:
        """Add what only the end knows; it goes with the commit."""
        memory, bound = self.memory, []
        for key, n in self._deltas.items():
            if n:
                bound += (*key, n, None, None, None)
        head, message_seq = self._chaining.head, self._message_seq
        events = head.seq - memory.head.seq
        if events or message_seq != memory.message_seq:
            self._head = head
            bound += (0, 0, "head", events, head.hash, head.time, message_seq)
        for start in range(0, len(bound), MOST_BOUND):
            some = bound[start : start + MOST_BOUND]
            self.writer.write(ADD_FIGURES[len(some) // FIGURE_FIELDS], some)

    def settle(self) -> None:
        """The commit has happened: what was gathered is now what is known."""
        memory = self.memory
        memory.head = self._head
        memory.message_seq = self._message_seq
        memory.record_seq = self._record_seq
        memory.next_due = self._next_due
        memory.version += self._is_renewed
        if self._claimed:
            self._remember_claimed()
        for (queue_id, subscription_id, state), n in self._deltas.items():
            counted = memory.counts.get(queue_id)
            if counted is not None:
                counted[subscription_id, state] = counted.get((subscription_id, state), 0) + n

    def _remember_claimed(self) -> None:
        claimed = self.memory.claimed
        claimed |= self._claimed
        for message_id in list(islice(claimed, max(0, len(claimed) - MOST_CLAIMED))):
            del claimed[message_id]

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        head, message_seq, deltas = self._chaining.head, self._message_seq, dict(self._deltas)
        claimed = dict(self._claimed)
        try:
            with self.writer.savepoint():
                yield
        except BaseException:
            self._chaining = Chaining(head)
            self._message_seq, self._deltas, self._claimed = message_seq, deltas, claimed
            raise

    def _renew(self) -> None:
        self._is_renewed = True

    # messages

    def insert(self, batches: Sequence[NewMessages | UniformMessages]) -> list[tuple[int, str]]:
        first = batches[0]
        if len(batches) == 1 and isinstance(first, UniformMessages):
            self._insert_uniform(first)
            return []
        if len(batches) > 1 and not any(isinstance(batch, UniformMessages) for batch in batches):
            rows = [row for batch in batches for row in batch.rows]  # type: ignore[union-attr]
            contents = [each for batch in batches for each in batch.contents]  # type: ignore[union-attr]
            batches = [NewMessages(rows, contents)]
        return super().insert(batches)

    def _number(self, rows: list[Row]) -> None:
        seq = self._message_seq
        for row in rows:
            seq += 1
            row.seq = seq
        self._message_seq = seq
        self._watch(rows)

    def _watch(self, rows: Sequence[Row]) -> None:
        """When the first of them comes due."""
        for row in rows:
            if row.due_at is not None and row.due_at < self._next_due:
                self._next_due = row.due_at

    def _insert_uniform(self, batch: UniformMessages) -> None:
        row, content, ids = batch.row, batch.content, batch.ids
        first = row.seq = self._message_seq + 1
        self._message_seq += len(ids)
        if row.due_at is not None and row.due_at < self._next_due:
            self._next_due = row.due_at
        if len(ids) == 1:
            row.id = ids[0]
            row.correlation_id = row.correlation_id or ids[0]
            content.body = batch.bodies[0]
            self.writer.write(SQL["insert_message"], _astuple(row))
            self.writer.write(SQL["insert_content"], (first, *_astuple(content)))
            return
        self.writer.write(SQL["insert_uniform"], (*_astuple(row), jsontext.text(ids)))
        values = _astuple(content)
        before, after = values[:_BODY], values[_BODY + 1 :]
        self.writer.write_many(
            SQL["insert_content"],
            [(number, *before, body, *after) for number, body in enumerate(batch.bodies, first)],
        )

    def rows(self, message_ids: Sequence[str]) -> list[Row]:
        """What is remembered is given once: whoever has it may change it. So it is a row of its own."""
        claimed = self.memory.claimed
        known = [_copy(row) for each in message_ids if (row := claimed.pop(each, None)) is not None]
        if len(known) == len(message_ids):
            return known
        ids = {row.id for row in known}
        return known + super().rows([each for each in message_ids if each not in ids])

    def update(self, rows: Sequence[Row], shape: Shape) -> None:
        self._watch(rows)
        if shape is Shape.CLAIMED:
            self._claimed |= {row.id: row for row in rows}
        else:
            self._forget(row.id for row in rows)
        super().update(rows, shape)

    def _forget(self, message_ids: Iterable[str]) -> None:
        for message_id in message_ids:
            self.memory.claimed.pop(message_id, None)
            self._claimed.pop(message_id, None)

    def _save_claimed(self, rows: Sequence[Row]) -> None:
        first = rows[0]
        if len(rows) == 1:
            super()._save_claimed(rows)
            return
        if all(row.lease_until == first.lease_until and row.claimed_by == first.claimed_by for row in rows):
            assert first.token is not None, "a claim has a token"
            lease, now, nonce = first.lease_until, first.claimed_at, first.token.partition("-")[2]
            numbers = jsontext.text([row.seq for row in rows])
            bindings = (lease, lease, now, now, nonce, first.claimed_by, numbers)
            self.writer.write(SQL["save_claimed_alike"], bindings)
            return
        claims = [
            (row.seq, row.lease_until, row.claimed_at, row.attempts, row.claims, row.token, row.claimed_by)
            for row in rows
        ]
        self.writer.write(SQL["save_claimed_list"], (jsontext.text(claims),))

    def _save_extended(self, rows: Sequence[Row]) -> None:
        leases = jsontext.text([(row.seq, row.lease_until) for row in rows])
        self.writer.write(SQL["save_extended_list"], (self.now, leases))

    def _save_completed(self, rows: Sequence[Row]) -> None:
        if len(rows) == 1:
            [row] = rows
            bindings = (row.finished_at, row.finished_at, row.result, row.seq)
            self.writer.write(SQL["save_completed"], bindings)
            return
        if any(row.result is not None for row in rows):
            super()._save_completed(rows)
            return
        numbers = jsontext.text([row.seq for row in rows])
        self.writer.write(SQL["save_completed_alike"], (self.now, self.now, numbers))

    def due(self, now: int, limit: int) -> Due:
        if now < self._next_due:
            return Due([], self._next_due if self._next_due < NEVER else None)
        found = super().due(now, limit)
        if not found.rows:
            self._next_due = NEVER if found.next_at is None else found.next_at
        return found

    def archive(self, rows: Sequence[Row]) -> None:
        self._archive(rows, self._chaining.head.seq)

    def rewrite(self, messages: Sequence[Rewritten], *, wipe: bool = False) -> None:
        if wipe:
            # From now on what is overwritten or deleted is wiped from the pages, not only unlinked.
            self.writer.send()
            self.writer.db.pragma("secure_delete", True)
        self._forget(each.message_id for each in messages)
        super().rewrite(messages)

    def counts(self, places: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Counts]:
        known = self.memory.counts
        missing = sorted({queue_id for queue_id, _ in places if queue_id not in known})
        if missing:
            known |= {queue_id: {} for queue_id in missing}
            for queue_id, subscription_id, state, n in self._db.fetch(
                SQL["counts"], (DIALECT.bind_list(missing),)
            ):
                known[queue_id][subscription_id, state] = n
        found = {}
        for queue_id, subscription_id in places:
            counted = {
                state: n
                for state in Counts.__struct_fields__
                if (
                    n := known[queue_id].get((subscription_id, state), 0)
                    + self._deltas.get((queue_id, subscription_id, state), 0)
                )
            }
            found[queue_id, subscription_id] = Counts(**counted)
        return found

    def add_counts(self, deltas: Mapping[CountKey, int]) -> None:
        if not self._deltas:
            self._deltas = dict(deltas)
            return
        for key, n in deltas.items():
            self._deltas[key] = self._deltas.get(key, 0) + n

    # the ledger

    def append(self, events: Sequence[EventDraft]) -> None:
        chaining = self._chaining
        if len(events) == 1:
            self.writer.write(SQL["insert_event"], chaining.row(events[0]))
        else:
            # Streamed: lists of rows of a large batch would only feed the garbage collector.
            self.writer.write_many(SQL["insert_event"], map(chaining.row, events))

    def chain(self) -> Chain:
        """The head that readers know."""
        return Chain(super().chain().anchor, self.memory.head)

    # numbers

    def number_records(self, count: int) -> int:
        if self._record_seq is None:
            [(self._record_seq,)] = self._db.fetch(SQL["newest_record"])
        first = self._record_seq + 1
        self._record_seq += count
        return first

    def _insert(self, table: str, names: Sequence[str], values: Sequence[Any]) -> int:
        marks = ", ".join("?" * len(names))
        sql = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - names of columns
        self.writer.change(sql, values)
        return self.writer.db.last_insert_rowid()
