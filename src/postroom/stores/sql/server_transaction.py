"""What transactions on database servers share: several run at once, at READ COMMITTED, in several processes.

What the port promises to lock is locked by rows where they exist, and by locks of names where they may not
exist yet; names share a few locks. Events are numbered and chained at the commit, under the lock of the head
of the chain, the last that is taken.
"""

import contextlib
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import msgspec

from postroom.kernel import jsontext
from postroom.kernel.budgets.model import Budget, BudgetChanges, BudgetFilter
from postroom.kernel.ledger import Chaining, EventDraft, Head, PlacedEvents, encode_rest
from postroom.kernel.model import Counts
from postroom.kernel.ports import CountKey, Due, NewMessages, Shape, UniformMessages
from postroom.kernel.rows import Row, Stored
from postroom.stores.sql.budgets import BudgetReads, BudgetWrites
from postroom.stores.sql.contention import MustWait
from postroom.stores.sql.dialect import Bindings, Dialect, SqlWrites, Statements, WriteDatabase
from postroom.stores.sql.due_memo import DueMemo
from postroom.stores.sql.facts import FactReads, FactWrites
from postroom.stores.sql.ledger import LedgerReads, LedgerWrites
from postroom.stores.sql.messages import MessageReads, MessageWrites, to_stored
from postroom.stores.sql.queues import QueueReads, QueueWrites

_astuple = msgspec.structs.astuple
Seal = Callable[[PlacedEvents, Head, Sequence[Bindings]], None]
"""Called with the places of the events, the head after them, and the changes of counts: queue, subscription,
state and how many."""
# Names that are locked share this many locks.
BUCKETS = 128


class ServerConnection(WriteDatabase, Protocol):
    """One transaction on its connection."""

    writes: int
    """How many statements were to change something."""

    def write(self, sql: str, bindings: Bindings = (), *, expect: int | None = None) -> None:
        """With `expect`, it must find so many rows, or the transaction begins anew."""
        ...

    def savepoint(self) -> contextlib.AbstractContextManager[None]: ...


class ServerReads(MessageReads, QueueReads, FactReads, LedgerReads, BudgetReads):
    READY_LABELLED: ClassVar[str] = "ready"
    """The statement that conditions on labels are added to."""

    def ready(self, lines: Sequence[int], limit: int, labels: Sequence[tuple[str, Any]] = ()) -> list[Stored]:
        if len(lines) > 1:
            waiting = self._waiting(lines)
            lines = [line for line in lines if line in waiting]
        found: list[Stored] = []
        for line in lines:
            if len(found) < limit:
                found += self._ready(line, limit - len(found), labels)
        return found

    def _waiting(self, lines: Sequence[int]) -> set[int]:
        """Those that have anything to claim."""
        rows = self._db.fetch(self._sql["waiting_lines"], (self._dialect.bind_list(lines),))
        return {line for (line,) in rows}

    def _ready(self, line: int, limit: int, labels: Sequence[tuple[str, Any]]) -> list[Stored]:
        sql, bound = self._sql["ready"], ()
        if labels:
            sql = self._sql[self.READY_LABELLED]
            sql = sql.replace(" ORDER BY", f" AND {self._dialect.labelled()}" * len(labels) + " ORDER BY")
            bound = tuple(value for label in labels for value in self._dialect.bind_label(*label))
        return list(map(to_stored, self._db.fetch(sql, (line, *bound, limit))))


class ServerTransaction(MessageWrites, QueueWrites, FactWrites, LedgerWrites, BudgetWrites):
    TRY_VERSION: ClassVar[str]
    """Have alone what every transaction shares, or say at once that it cannot be had."""

    def __init__(
        self,
        db: ServerConnection,
        sql: Statements,
        dialect: Dialect,
        version: int,
        now: int,
        due_memo: DueMemo,
    ) -> None:
        SqlWrites.__init__(self, db, sql, dialect)
        self._due_memo = due_memo
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

    def _finish(self) -> tuple[Head, Any] | None:
        """Number and chain the events, add what only the end knows. Answers with the head after it and with
        what else the statement tells that locks it; None when nothing was changed."""
        sql, out = self._sql, self._out
        if self._is_renewed:
            out.write(sql["set_version"])
        deltas = sorted((*key, n) for key, n in self._deltas.items() if n)
        if not self._events and not deltas and not self.connection.writes:
            return None
        # Others wait from the lock to the commit, so what can be done is done before.
        rests = [encode_rest(event) for event in self._events]
        seal = self._prepare_seal()
        self._take_turn()
        [(seq, hash_, ledger_time, *rest)] = self._db.fetch(sql["lock_head"])
        head = Head(seq, hash_, ledger_time)
        # Others may have been quicker.
        if self._events and ledger_time > self.now and self._budgets_saved:
            saved = [(ledger_time, *key, self.now) for key in sorted(self._budgets_saved)]
            out.write_many(sql["retime_budget"], saved)
        chaining = Chaining(head)
        placed = chaining.place([event.time for event in self._events], rests)
        head = chaining.head
        if self._archived:
            out.write(sql["set_archived"], (head.seq, self._dialect.bind_list(self._archived)))
        seal(placed, head, deltas)
        return head, rest

    def _take_turn(self) -> None:
        """Where locking the head takes a statement of its own."""

    def _prepare_seal(self) -> Seal:
        """What inserts the events, sets the head and adds to the counts when their places are known."""

        def seal(placed: PlacedEvents, head: Head, deltas: Sequence[Bindings]) -> None:
            places = zip(placed.numbers, placed.times, placed.hashes, self._events, strict=True)
            rows = [(seq, at, *_astuple(event)[1:], hash_) for seq, at, hash_, event in places]
            if rows:
                self._out.write_many(self._sql["insert_event"], rows)
                self._out.write(self._sql["set_head"], (head.seq, head.hash, head.time))
            if deltas:
                self._out.write_many(self._sql["add_count"], deltas)

        return seal

    @property
    def has_news(self) -> bool:
        return bool(self._events)

    @property
    def told(self) -> int:
        """How many events it adds."""
        return len(self._events)

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
            if not self._try_version():
                self.must_wait = True
                raise MustWait("others work with what is to be changed")
            self._is_renewed = True

    def _try_version(self) -> bool:
        return bool(self._db.fetch(self.TRY_VERSION)[0][0])

    def _lock_names(self, name: str, names: Iterable[str]) -> None:
        buckets = sorted({zlib.crc32(each.encode()) % BUCKETS for each in names})
        self._db.fetch(self._sql[name], (self._dialect.bind_list(buckets),))

    # messages

    def due(self, now: int, limit: int) -> Due:
        if limit and self._due_memo.is_quiet(now):
            return Due([])
        started = time.monotonic_ns()
        found = super().due(now, limit)
        if not found.rows and (found.next_at is None or found.next_at > self.now):
            self._due_memo.note(self.now, found.next_at, (time.monotonic_ns() - started) // 1000)
        return found

    def insert(self, batches: Sequence[NewMessages | UniformMessages]) -> list[tuple[int, str]]:
        for batch in batches:
            self._expect((batch.row,) if isinstance(batch, UniformMessages) else batch.rows)
        return super().insert(batches)

    def update(self, rows: Sequence[Row], shape: Shape) -> None:
        if shape is not Shape.COMPLETED:
            self._expect(rows)
        super().update(rows, shape)

    def _expect(self, rows: Sequence[Row]) -> None:
        """Rows that come due at a time are going to be written."""
        dues = [row.due_at for row in rows if row.due_at is not None]
        if dues:
            self._due_memo.expect(min(dues))

    def keyed(self, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], Stored]:
        """Of two that publish with the same key the second waits, and finds what the first has published."""
        self._lock_names("lock_keys", (f"{queue_id}/{key}" for queue_id, key in keys))
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

    def _number(self, rows: list[Row]) -> None:
        numbers = self._db.fetch(self._sql["number_messages"], (len(rows),))
        for row, (number,) in zip(rows, numbers, strict=True):
            row.seq = number

    def _save_claimed(self, rows: Sequence[Row]) -> None:
        first = rows[0]
        if all(row.lease_until == first.lease_until and row.claimed_by == first.claimed_by for row in rows):
            assert first.token is not None, "a claim has a token"
            lease, now, nonce = first.lease_until, first.claimed_at, first.token.partition("-")[2]
            numbers = self._dialect.bind_list([row.seq for row in rows])
            bindings = (lease, lease, now, now, nonce, first.claimed_by, numbers)
            self._out.write(self._sql["save_claimed_alike"], bindings)
        else:
            super()._save_claimed(rows)

    def archive(self, rows: Sequence[Row]) -> None:
        numbers = [row.seq for row in rows]
        self._archived += numbers
        for name in ("archive_list", "drop_message_list", "drop_content_list"):
            self._out.write(self._sql[name], (self._dialect.bind_list(numbers),))

    def counts(self, places: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Counts]:
        """Of two that have a limit to keep to, the second waits."""
        buckets = sorted({queue_id % BUCKETS for queue_id, _ in places})
        self._db.fetch(self._sql["lock_queues"], (self._dialect.bind_list(buckets),))
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

    # budgets, numbers

    def budgets(self, wanted: BudgetFilter, now: int) -> list[Budget]:
        names = wanted.names
        if names is None:
            names = tuple(budget.name for budget in super().budgets(wanted, now))
        self._lock_names("lock_budgets", (f"{wanted.tenant}/{name}" for name in names))
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
