"""Reads and transactions on PostgreSQL, at READ COMMITTED: each question sees what is committed by then.

What the port promises to lock is locked by rows where they exist, and by advisory locks where they may not
exist yet. These are few, whatever is asked for, since the server has room for a limited number. Events are
numbered and chained at the commit, under the lock of the head of the chain, the last that is taken.
"""

import contextlib
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from postroom.kernel import jsontext
from postroom.kernel.budgets.model import Budget, BudgetChanges, BudgetFilter
from postroom.kernel.facts import REMEMBERED, Fact
from postroom.kernel.ledger import Chaining, EventDraft, Head
from postroom.kernel.model import Counts
from postroom.kernel.ports import CountKey, RowFilter
from postroom.kernel.rows import Row, Stored
from postroom.stores.postgres.connection import PostgresReadConnection, PostgresWriteConnection
from postroom.stores.postgres.dialect import READ_SQL, READING, WRITE_SQL, WRITING
from postroom.stores.postgres.errors import MustWait, Overtaken
from postroom.stores.sql.budgets import BudgetReads, BudgetWrites
from postroom.stores.sql.dialect import SqlReads, SqlWrites
from postroom.stores.sql.facts import FactReads, FactWrites
from postroom.stores.sql.ledger import LedgerReads, LedgerWrites
from postroom.stores.sql.messages import MessageReads, MessageWrites, to_stored
from postroom.stores.sql.queues import QueueReads, QueueWrites

_astuple = msgspec.structs.astuple
# Names that are locked share this many locks.
BUCKETS = 128
_LOCK = "SELECT pg_advisory_xact_lock('{}'::regclass::oid::int, number) FROM unnest(?::int[]) AS number"
LOCK_BUDGETS = _LOCK.format("accounts")
LOCK_KEYS = _LOCK.format("messages")
LOCK_QUEUES = _LOCK.format("queues")
# Every transaction shares this lock; who changes what processes remember has it alone.
LOCK_VERSION_SHARED = "SELECT pg_advisory_xact_lock_shared('figures'::regclass::oid::int, 0)"
LOCK_VERSION = "SELECT pg_advisory_xact_lock('figures'::regclass::oid::int, 0)"
TRY_VERSION = "SELECT pg_try_advisory_xact_lock('figures'::regclass::oid::int, 0)"


class PostgresReads(MessageReads, QueueReads, FactReads, LedgerReads, BudgetReads):
    def __init__(self, db: PostgresReadConnection) -> None:
        SqlReads.__init__(self, db, READ_SQL, READING)

    def ready(self, lines: Sequence[int], limit: int, labels: Sequence[tuple[str, Any]] = ()) -> list[Stored]:
        sql, bound = self._sql["ready"], ()
        if labels:
            sql = sql.replace(" ORDER BY", f" AND {self._dialect.labelled()}" * len(labels) + " ORDER BY")
            bound = tuple(value for label in labels for value in self._dialect.bind_label(*label))
        if len(lines) > 1:
            rows = self._db.fetch(self._sql["waiting_lines"], (list(lines),))
            lines = [line for (line,) in rows]
        found: list[Stored] = []
        for line in lines:
            if len(found) < limit:
                rows = self._db.fetch(sql, (line, *bound, limit - len(found)))
                found += map(to_stored, rows)
        return found

    def keyed(self, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], Stored]:
        queues, names = [queue_id for queue_id, _ in keys], [key for _, key in keys]
        rows = self._db.fetch(self._sql["keyed"], (queues, names))
        return {
            (queue_id, key): to_stored(tuple(row), archived=archived)
            for archived, queue_id, key, *row in rows
        }


class PostgresTransaction(PostgresReads, MessageWrites, QueueWrites, FactWrites, LedgerWrites, BudgetWrites):
    def __init__(self, db: PostgresWriteConnection, version: int, now: int) -> None:
        SqlWrites.__init__(self, db, WRITE_SQL, WRITING)
        self.connection = db
        self.version = version
        self.now = now
        self.woken: Mapping[int, int] = {}
        self.must_wait = False
        """Whether it has to begin anew, alone."""
        self._is_renewed = False
        self._events: list[EventDraft] = []
        self._deltas: dict[CountKey, int] = {}
        self._archived: list[int] = []
        self._budgets_saved: set[tuple[str, str]] = set()

    # life

    def finish(self) -> str | None:
        """Number and chain the events, add what only the end knows. A lost commit is found by its number."""
        sql, out = self._sql, self._out
        if self._is_renewed:
            out.write(sql["set_version"])
        deltas = sorted((*key, n) for key, n in self._deltas.items() if n)
        if not self._events and not deltas and not self.connection.writes:
            return None
        [(seq, hash_, time, number)] = self._db.fetch(sql["lock_head"])
        head = Head(seq, hash_, time)
        if self._events:
            if time > self.now:
                # Others were quicker. In the ledger time never goes back.
                late = [msgspec.structs.replace(each, time=max(each.time, time)) for each in self._events]
                self._events = late
                if self._budgets_saved:
                    tenants, names = zip(*self._budgets_saved, strict=True)
                    out.write(sql["retime_budgets"], (time, list(tenants), list(names), self.now))
            chaining = Chaining(head)
            out.write_many(sql["insert_event"], map(chaining.row, self._events))
            head = chaining.head
            out.write(sql["set_head"], (head.seq, head.hash, head.time))
        if self._archived:
            out.write(sql["set_archived"], (head.seq, self._archived))
        if deltas:
            queues, subscribers, states, counts = map(list, zip(*deltas, strict=True))
            out.write(sql["add_counts"], (queues, subscribers, states, counts))
        return number

    @property
    def has_news(self) -> bool:
        return bool(self._events)

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        kept = (len(self._events), dict(self._deltas), len(self._archived), self._is_renewed)
        try:
            with self.connection.savepoint():
                yield
        except BaseException:
            events, self._deltas, archived, self._is_renewed = kept
            del self._events[events:], self._archived[archived:]
            raise

    def _renew(self) -> None:
        """Nobody else may be at work with what they remember; tried again, this begins alone."""
        if not self._is_renewed:
            if not self._db.fetch(TRY_VERSION)[0][0]:
                self.must_wait = True
                raise MustWait("others work with what is to be changed")
            self._is_renewed = True

    def _lock_names(self, sql: str, names: Iterable[str]) -> None:
        buckets = sorted({zlib.crc32(name.encode()) % BUCKETS for name in names})
        self._db.fetch(sql, (buckets,))

    # messages

    def keyed(self, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], Stored]:
        """Of two that publish with the same key the second waits, and finds what the first has published."""
        self._lock_names(LOCK_KEYS, (f"{queue_id}/{key}" for queue_id, key in keys))
        found = super().keyed(keys)
        live = [stored.row.id for stored in found.values() if not stored.archived]
        if not live:
            return found
        locked = {row.id: row for row in self.rows(live)}
        if any(message_id not in locked for message_id in live):
            # Archived in this moment.
            found = super().keyed(keys)
        for stored in found.values():
            stored.row = locked.get(stored.row.id, stored.row)
        return found

    def page_statement(
        self, wanted: RowFilter, after: int | None, limit: int, *, archived: bool
    ) -> tuple[str, tuple[Any, ...]]:
        sql, bindings = super().page_statement(wanted, after, limit, archived=archived)
        return (sql if archived else f"{sql} FOR UPDATE OF m"), bindings

    def _number(self, rows: list[Row]) -> None:
        numbers = self._db.fetch(self._sql["number_messages"], (len(rows),))
        for row, (number,) in zip(rows, numbers, strict=True):
            row.seq = number

    def _save_claimed(self, rows: Sequence[Row]) -> None:
        first = rows[0]
        if all(row.lease_until == first.lease_until and row.claimed_by == first.claimed_by for row in rows):
            assert first.token is not None, "a claim has a token"
            lease, now, nonce = first.lease_until, first.claimed_at, first.token.partition("-")[2]
            numbers = [row.seq for row in rows]
            bindings = (lease, lease, now, now, nonce, first.claimed_by, numbers)
            self._out.write(self._sql["save_claimed_alike"], bindings)
        else:
            super()._save_claimed(rows)

    def _save_extended(self, rows: Sequence[Row]) -> None:
        leases = ([row.seq for row in rows], [row.lease_until for row in rows])
        self._out.write(self._sql["save_extended_list"], (self.now, *leases))

    def _save_completed(self, rows: Sequence[Row]) -> None:
        if any(row.result is not None for row in rows):
            super()._save_completed(rows)
            return
        self._out.write(self._sql["save_completed_alike"], (self.now, self.now, [row.seq for row in rows]))

    def archive(self, rows: Sequence[Row]) -> None:
        numbers = [row.seq for row in rows]
        self._archived += numbers
        for name in ("archive_list", "drop_message_list", "drop_content_list"):
            self._out.write(self._sql[name], (numbers,))

    def counts(self, places: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Counts]:
        """Of two that have a limit to keep to, the second waits."""
        self._db.fetch(LOCK_QUEUES, (sorted({queue_id for queue_id, _ in places}),))
        found = super().counts(places)
        states = Counts.__struct_fields__
        return {
            place: Counts(
                **{
                    state: getattr(found.get(place), state, 0) + self._deltas.get((*place, state), 0)
                    for state in states
                }
            )
            for place in places
        }

    def add_counts(self, deltas: Mapping[CountKey, int]) -> None:
        for key, n in deltas.items():
            self._deltas[key] = self._deltas.get(key, 0) + n

    # the ledger

    def append(self, events: Sequence[EventDraft]) -> None:
        self._events += events

    def prune_ledger(self, before: int, up_to_seq: int | None, limit: int) -> int:
        self._db.fetch(self._sql["lock_anchor"])
        return super().prune_ledger(before, up_to_seq, limit)

    def _stand_messages(self, up_to: int) -> None:
        rows = []
        for message_id, place, data in self._db.fetch(self._sql["last_told"], (up_to,)):
            told = jsontext.decode(data)
            rows.append((message_id, place, told["state"], told["attempts"]))
        self._out.write_many(self._sql["put_standing"], rows)

    # facts, budgets, numbers

    def put_facts(self, facts: Sequence[tuple[Fact, int]]) -> None:
        if any(fact.kind in REMEMBERED for fact, _ in facts):
            self._renew()
        # In one order, so that no two wait for each other.
        ordered = sorted(facts, key=lambda each: (each[0].tenant, each[0].kind, each[0].key))
        columns = [list(column) for column in zip(*(_astuple(fact) for fact, _ in ordered), strict=True)]
        expected = [version for _, version in ordered]
        if self._out.change(self._sql["put_facts"], (*columns, *columns[:3], expected)) != len(facts):
            raise Overtaken("somebody else has changed the same thing in this moment")

    def budgets(self, wanted: BudgetFilter, now: int) -> list[Budget]:
        names = wanted.names
        if names is None:
            names = tuple(budget.name for budget in super().budgets(wanted, now))
        self._lock_names(LOCK_BUDGETS, (f"{wanted.tenant}/{name}" for name in names))
        named = super().budgets(BudgetFilter(tenant=wanted.tenant, names=names), now)
        return sorted(named, key=lambda budget: budget.name)

    def save_budgets(self, changes: BudgetChanges) -> None:
        self._budgets_saved |= changes.budgets.keys()
        super().save_budgets(changes)

    def number_records(self, count: int) -> int:
        """One at a time: numbers that follow each other are not to be had from a sequence."""
        assert count == 1
        return self._db.fetch(self._sql["number_records"])[0][0]

    def _insert(self, table: str, names: Sequence[str], values: Sequence[Any]) -> int:
        marks = ", ".join("?" * len(names))
        sql = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks}) RETURNING id"  # noqa: S608 - names
        return self._db.fetch(sql, values)[0][0]
