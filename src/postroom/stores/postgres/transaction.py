"""Reads and transactions on PostgreSQL, at READ COMMITTED: each question sees what is committed by then.

What may not exist yet is locked by advisory locks. These are few, whatever is asked for, since the server has
room for a limited number.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

import msgspec

from postroom.kernel.facts import REMEMBERED, Fact
from postroom.kernel.ledger import EventDraft, Head, PlacedEvents
from postroom.kernel.ports import NewMessages, RowFilter, Shape, UniformMessages
from postroom.kernel.rows import CONTENT_FIELDS, ROW_FIELDS, Content, Row, Stored
from postroom.stores.postgres.arrays import pack_array
from postroom.stores.postgres.connection import PostgresReadConnection, PostgresWriteConnection
from postroom.stores.postgres.dialect import (
    CONTENT_DIFFERS,
    EVENT_DIFFERS,
    READ_SQL,
    READING,
    ROW_DIFFERS,
    WRITE_SQL,
    WRITING,
)
from postroom.stores.postgres.floors import LOWEST, UNORDERED, Floors
from postroom.stores.postgres.frozen import NAMES
from postroom.stores.sql.contention import Overtaken
from postroom.stores.sql.dialect import Bindings, SqlReads
from postroom.stores.sql.due_memo import DueMemo
from postroom.stores.sql.messages import to_stored
from postroom.stores.sql.server_transaction import Seal, ServerReads, ServerTransaction

T = TypeVar("T")
_astuple = msgspec.structs.astuple
# Every transaction shares this lock; who changes what processes remember has it alone.
LOCK_VERSION_SHARED = "SELECT pg_advisory_xact_lock_shared('figures'::regclass::oid::int, 0)"
LOCK_VERSION = "SELECT pg_advisory_xact_lock('figures'::regclass::oid::int, 0)"
TRY_VERSION = "SELECT pg_try_advisory_xact_lock('figures'::regclass::oid::int, 0)"

# In one statement.
MOST_ROWS = 1000
MOST_BYTES = 8 << 20


def pack_columns(rows: Sequence[Bindings]) -> list[Any]:
    return [pack_array(column) for column in zip(*rows, strict=True)]


def _slices(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    return (rows[start : start + MOST_ROWS] for start in range(0, len(rows), MOST_ROWS))


def _alike(names: Sequence[str], differing: Sequence[str]) -> tuple[int, ...]:
    return tuple(i for i, name in enumerate(names) if name not in differing)


_ROW_ALIKE = _alike(ROW_FIELDS, ROW_DIFFERS)
_CONTENT_ALIKE = _alike(CONTENT_FIELDS, CONTENT_DIFFERS)
_EVENT_FIELDS = EventDraft.__struct_fields__
_EVENT_DIFFERS = tuple(map(_EVENT_FIELDS.index, EVENT_DIFFERS))
_EVENT_ALIKE = _alike(_EVENT_FIELDS, EVENT_DIFFERS)


def _pick(values: Sequence[T], places: Sequence[int]) -> list[T]:
    return [values[i] for i in places]


class _EventColumns:
    """Events that are inserted together, packed before their places in the chain are known. Of those of one
    queue, cause and actor most columns are one value."""

    def __init__(self, events: Sequence[EventDraft]) -> None:
        columns = list(zip(*map(_astuple, events), strict=True))
        alike = _pick(columns, _EVENT_ALIKE)
        self._alike: list[Any] | None = None
        if all(column.count(column[0]) == len(column) for column in alike):
            self._alike = [column[0] for column in alike[1:]]
            columns = [(), *_pick(columns, _EVENT_DIFFERS)]
        self._packed = list(map(pack_array, columns[1:]))

    def place(self, placed: PlacedEvents) -> tuple[str, Bindings]:
        """The statement that inserts them there, and its values."""
        numbers, packed = pack_array(list(placed.numbers)), (*self._packed, pack_array(placed.hashes))
        if self._alike is None:
            return WRITE_SQL["insert_events"], (numbers, pack_array(placed.times), *packed)
        return WRITE_SQL["insert_events_alike"], (placed.times[0], *self._alike, numbers, *packed)


def _as_one(statements: Sequence[tuple[str, Bindings]]) -> tuple[str, Bindings]:
    """Changes of different rows as one statement."""
    *first, (last, _) = statements
    parts = ", ".join(f"part_{i} AS ({sql})" for i, (sql, _) in enumerate(first))
    return f"WITH {parts} {last}" if first else last, [each for _, bound in statements for each in bound]


NO_FLOOR = (UNORDERED, LOWEST)
# By its id and queue a live message is found through its content (migration 2).
_BY_QUEUE = "m.seq IN (SELECT k.seq FROM contents k WHERE k.queue_id "
_BY_ID = "m.seq = ANY(ARRAY(SELECT k.seq FROM contents k WHERE k.id = ?))"


def by_contents(sql: str) -> str:
    """A statement of filters for live messages."""
    sql = re.sub(r"m\.queue_id (= \?|IN \([^)]*\))", rf"{_BY_QUEUE}\1)", sql)
    return sql.replace("m.id = ?", _BY_ID)


class PostgresReads(ServerReads):
    READY_LABELLED = "ready_labelled"
    _floors: Floors | None = None
    """Only transactions have any."""

    def __init__(self, db: PostgresReadConnection) -> None:
        SqlReads.__init__(self, db, READ_SQL, READING)

    def _floor(self, line: int) -> tuple[int, int]:
        return NO_FLOOR if self._floors is None else self._floors.line(line)

    def _waiting(self, lines: Sequence[int]) -> set[int]:
        wanted = pack_columns([(line, *self._floor(line)) for line in lines])
        return {line for (line,) in self._db.fetch(self._sql["waiting_lines"], wanted)}

    def _ready(self, line: int, limit: int, labels: Sequence[tuple[str, Any]]) -> list[Stored]:
        if labels:
            return super()._ready(line, limit, labels)
        rows = self._db.fetch(self._sql["ready"], (line, line, *self._floor(line), limit))
        self._meet_line(line, rows[0][0], is_empty=rows[0][1] is None)
        # Without a message there is one row, of the count alone.
        return [to_stored(row[1:]) for row in rows if row[1] is not None]

    def _meet_line(self, line: int, returns: int, *, is_empty: bool) -> None:
        """How often messages have returned to a line is known, and whether there are any."""

    def _find_next_due(self) -> int | None:
        return self._first("next_due", LOWEST)

    def _fetch_due(self, now: int, limit: int) -> list[tuple[Any, ...]]:
        floor = LOWEST if self._floors is None else self._floors.due()[0]
        return self._db.fetch(self._sql["due"], (floor, now, limit))

    def _first(self, name: str, *bindings: Any) -> int | None:
        """The number that a statement finds, if any."""
        rows = self._db.fetch(self._sql[name], bindings)
        return rows[0][0] if rows else None

    def find_statement(self, wanted: RowFilter, after: int, limit: int) -> tuple[str, tuple[Any, ...]]:
        sql, bindings = super().find_statement(wanted, after, limit)
        return by_contents(sql), bindings

    def page_statement(
        self, wanted: RowFilter, after: int | None, limit: int, *, archived: bool
    ) -> tuple[str, tuple[Any, ...]]:
        sql, bindings = super().page_statement(wanted, after, limit, archived=archived)
        return sql if archived else by_contents(sql), bindings

    def keyed(self, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], Stored]:
        rows = self._db.fetch(self._sql["keyed"], pack_columns(keys))
        return {
            (queue_id, key): to_stored(tuple(row), archived=archived)
            for archived, queue_id, key, *row in rows
        }


class PostgresTransaction(ServerTransaction, PostgresReads):
    TRY_VERSION = TRY_VERSION
    connection: PostgresWriteConnection

    def __init__(
        self,
        db: PostgresWriteConnection,
        version: int,
        now: int,
        due_memo: DueMemo,
        *,
        floors: Floors | None = None,
        ledger_time: int = 0,
        by_row: bool = False,
        folds: bool = True,
    ) -> None:
        """`by_row`: processes of the version before may be at work. `folds`: it adds up the counts."""
        ServerTransaction.__init__(self, db, WRITE_SQL, WRITING, version, now, due_memo)
        self._floors = None if by_row else floors
        self._ledger_time = ledger_time
        self._returned: set[int] = set()
        self._unordered: set[int] = set()
        self._by_row = by_row
        self._folds = folds and not by_row

    def finish(self) -> str | None:
        """The number by which a lost commit is found; None when nothing was changed."""
        done = self._finish()
        return None if done is None else done[1][0]

    def _prepare_seal(self) -> Seal:
        slices = list(map(_EventColumns, _slices(self._events)))

        def seal(placed: PlacedEvents, head: Head, deltas: Sequence[Bindings]) -> None:
            parts = zip(slices, placed.parts(MOST_ROWS), strict=True)
            statements = [columns.place(part) for columns, part in parts]
            set_head = (self._sql["set_head"], (head.seq, head.hash, head.time))
            if statements and self._by_row:
                statements.append(set_head)
            if deltas:
                name = "add_counts" if self._by_row else "append_counts"
                statements.append((self._sql[name], pack_columns(deltas)))
            lines = {"unorder_lines": self._unordered, "return_lines": self._returned - self._unordered}
            statements += [
                (self._sql[name], [pack_array(sorted(some))]) for name, some in lines.items() if some
            ]
            # Together they cost the server and the driver less than one by one.
            if statements:
                self._out.write(*_as_one(statements))
            if self._folds:
                self._out.write(self._sql["fold_counts"])
                self._out.write(*set_head)

        return seal

    def _take_turn(self) -> None:
        if self._by_row:
            self._out.write(self._sql["take_turn_by_row"])
        self._out.write(self._sql["take_turn"])

    # Below a floor there is nothing: what is written is above it, or counted as a return.

    def insert(self, batches: Sequence[NewMessages | UniformMessages]) -> list[tuple[int, str]]:
        for batch in batches:
            for row in (batch.row,) if isinstance(batch, UniformMessages) else batch.rows:
                if row.state == "pending" and row.sort_key < self.now:
                    self._unordered.add(row.line)
        return super().insert(batches)

    def update(self, rows: Sequence[Row], shape: Shape) -> None:
        if shape in (Shape.CHANGED, Shape.MOVED):
            self._returned.update(row.line for row in rows if row.state == "pending")
        super().update(rows, shape)

    def _meet_line(self, line: int, returns: int, *, is_empty: bool) -> None:
        if self._floors is not None and self._floors.meet(line, returns, is_empty=is_empty):
            # Who may still write is asked first: what they have committed by then is seen.
            oldest = self._floors.oldest(self._oldest_turn)
            first = self._first("first_pending", line, self._floors.line(line)[1])
            self._floors.raise_line(line, returns, oldest if first is None else min(first, oldest))

    def _find_next_due(self) -> int | None:
        if self._floors is None:
            return super()._find_next_due()
        floor, is_time = self._floors.due()
        oldest = self._floors.oldest(self._oldest_turn) if is_time else LOWEST
        first = self._first("next_due", floor)
        self._floors.raise_due(oldest if first is None else min(first, oldest))
        return first

    def _oldest_turn(self) -> int:
        """Nothing that is not committed yet has an earlier time, and nothing that will begin."""
        found = self._first("oldest_turn", NAMES)
        return LOWEST if found is None else min(found, self._ledger_time)

    def _insert_rows(self, rows: list[Row], contents: list[Content]) -> None:
        """A list for each column, unless bodies are so large that they go one by one."""
        if sum(len(content.body or b"") for content in contents) > MOST_BYTES:
            super()._insert_rows(rows, contents)
            return
        self._number(rows)
        for some in _slices(list(map(_astuple, rows))):
            self._out.write(self._sql["insert_messages"], pack_columns(some))
        numbered = [
            (row.seq, row.id, row.queue_id, *_astuple(content))
            for row, content in zip(rows, contents, strict=True)
        ]
        for some in _slices(numbered):
            self._out.write(self._sql["insert_contents"], pack_columns(some))

    def _insert_uniform(self, batch: UniformMessages) -> None:
        if len(batch.ids) > MOST_ROWS or sum(len(body or b"") for body in batch.bodies) > MOST_BYTES:
            super()._insert_uniform(batch)
            return
        talk = batch.row.correlation_id
        columns = (batch.ids, [talk] * len(batch.ids) if talk else batch.ids, batch.bodies)
        row, content = batch.row, batch.content
        alike = _pick(_astuple(row), _ROW_ALIKE), (row.queue_id,), _pick(_astuple(content), _CONTENT_ALIKE)
        self._out.write(self._sql["insert_alike"], (*map(pack_array, columns), *chain.from_iterable(alike)))

    def page_statement(
        self, wanted: RowFilter, after: int | None, limit: int, *, archived: bool
    ) -> tuple[str, tuple[Any, ...]]:
        sql, bindings = super().page_statement(wanted, after, limit, archived=archived)
        return (sql if archived else f"{sql} FOR UPDATE OF m"), bindings

    def _save_claimed(self, rows: Sequence[Row]) -> None:
        if any(row.due_at != row.lease_until for row in rows):
            self._save(rows, Shape.CHANGED)
        else:
            super()._save_claimed(rows)

    def _save_completed(self, rows: Sequence[Row]) -> None:
        for some in _slices(rows):
            held = pack_columns([(row.seq, row.token, row.result) for row in some])
            bindings = (self.now, self.now, *held)
            self.connection.write(self._sql["save_completed_list"], bindings, expect=len(some))

    def _save_extended(self, rows: Sequence[Row]) -> None:
        if any(row.due_at != row.lease_until for row in rows):
            self._save(rows, Shape.CHANGED)
            return
        leases = [(row.seq, row.lease_until) for row in rows]
        self._out.write(self._sql["save_extended_list"], (self.now, *pack_columns(leases)))

    def put_facts(self, facts: Sequence[tuple[Fact, int]]) -> None:
        if any(fact.kind in REMEMBERED for fact, _ in facts):
            self._renew()
        # In one order, so that no two wait for each other.
        ordered = sorted(facts, key=lambda each: (each[0].tenant, each[0].kind, each[0].key))
        columns = pack_columns([_astuple(fact) for fact, _ in ordered])
        expected = pack_array([version for _, version in ordered])
        if self._out.change(self._sql["put_facts"], (*columns, *columns[:3], expected)) != len(facts):
            raise Overtaken("somebody else has changed the same thing in this moment")
