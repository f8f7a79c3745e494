"""The kernel's primitives on an open SQLite write transaction.

Events and counts are gathered and written once, at the commit.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import apsw
import msgspec

from postroom.kernel import jsontext
from postroom.kernel.checks import is_text
from postroom.kernel.ledger import Chaining, EventDraft, Head
from postroom.kernel.model import (
    DEAD_LETTER,
    Counts,
    Document,
    Ordering,
    Position,
    Queue,
    Schema,
    Scope,
    Subscription,
)
from postroom.kernel.ports import HousekeeperRun
from postroom.kernel.rows import CONTENT_FIELDS, ROW_FIELDS, Content, Row, Stored
from postroom.stores.sqlite import documents, records
from postroom.stores.sqlite.audit import RuleCache, SqliteServiceWrites
from postroom.stores.sqlite.budgets import SqliteBudgetWrites
from postroom.stores.sqlite.pruning import SqlitePruning
from postroom.stores.sqlite.queues import GONE, QueueCache, read_queues
from postroom.stores.sqlite.statements import MUTABLE, SQL, one

_WIDTH = len(ROW_FIELDS)
_BODY = CONTENT_FIELDS.index("body")
_MUTABLE_OF = tuple(ROW_FIELDS.index(name) for name in MUTABLE)
_astuple = msgspec.structs.astuple


class Cache:
    """What the owner of the file may remember between transactions; thrown away after a rollback."""

    def __init__(self, db: apsw.Connection) -> None:
        seq, hash_, time, message_seq = one(db.execute(SQL["chain"], ("head",)))
        self.head = Head(seq, hash_, time)
        self.message_seq: int = message_seq
        self.places: QueueCache | None = None
        self.drawer = RuleCache()
        self.counts: dict[tuple[int, int, str], int] = {
            (queue_id, subscription_id, state): n
            for queue_id, subscription_id, state, n in db.execute("SELECT * FROM counts")
        }


def stored(row: tuple[Any, ...]) -> Stored:
    return Stored(Row(*row[:_WIDTH]), Content(*row[_WIDTH:]))


class SqliteTransaction(SqliteBudgetWrites, SqliteServiceWrites, SqlitePruning):
    def __init__(self, db: apsw.Connection, cache: Cache) -> None:
        self._db = db
        self._cache = cache
        self._drawer = cache.drawer
        self._events: list[EventDraft] = []
        self._deltas: dict[tuple[int, int, str], int] = {}
        self._message_seq = cache.message_seq
        self._lost: BaseException | None = None

    def finish(self) -> Head:
        """Write what was gathered; the caller commits and then calls `settle`."""
        self._refuse_when_lost()
        before = self._cache.head
        chaining = Chaining(before)
        if len(self._events) == 1:
            self._db.execute(SQL["insert_event"], chaining.row(self._events[0]))
        elif self._events:
            # Streamed: lists of rows of a large batch would only feed the garbage collector.
            self._db.executemany(SQL["insert_event"], map(chaining.row, self._events))
        head = chaining.head
        figures: list[tuple[Any, ...]] = [(*key, n, None, None, None) for key, n in self._deltas.items() if n]
        if self._events or self._message_seq != self._cache.message_seq:
            figures.append((0, 0, "head", head.seq - before.seq, head.hash, head.time, self._message_seq))
        if figures:
            self._db.executemany(SQL["add_figure"], figures)
        return head

    def settle(self, head: Head) -> None:
        """The commit has happened: what was gathered is now what is remembered."""
        cache = self._cache
        cache.head = head
        cache.message_seq = self._message_seq
        for key, n in self._deltas.items():
            cache.counts[key] = cache.counts.get(key, 0) + n

    def _refuse_when_lost(self) -> None:
        """SQLite itself undoes a transaction when there is no room: what came after would stand alone."""
        if self._lost is not None:
            raise self._lost

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        self._refuse_when_lost()
        events, deltas, message_seq = len(self._events), dict(self._deltas), self._message_seq
        self._db.execute("SAVEPOINT step")
        try:
            yield
        except BaseException as error:
            if not self._db.in_transaction:
                self._lost = error
                raise
            self._db.execute("ROLLBACK TO step; RELEASE step")
            del self._events[events:]
            self._deltas, self._message_seq = deltas, message_seq
            self._cache.places = None
            self._drawer.forget()
            raise
        self._db.execute("RELEASE step")

    def last_time(self) -> int:
        return self._cache.head.time

    # places

    def _places(self) -> QueueCache:
        if self._cache.places is None:
            self._cache.places = QueueCache(self._db)
        return self._cache.places

    def places_stamp(self) -> object | None:
        return self._places()

    def scope(self, tenant: str, slug: str) -> Scope | None:
        return self._places().scopes.get((tenant, slug))

    def scope_by_id(self, scope_id: int) -> Scope:
        return self._places().scopes_by_id[scope_id]

    def insert_scope(self, scope: Scope) -> int:
        self._cache.places = None
        self._db.execute(
            "INSERT INTO scopes (tenant, slug, display_name, description, state, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                scope.tenant,
                scope.slug,
                scope.display_name,
                scope.description,
                scope.state.value,
                scope.created_at,
                scope.updated_at,
            ),
        )
        return self._db.last_insert_rowid()

    def update_scope(self, scope: Scope) -> None:
        self._cache.places = None
        self._db.execute(
            "UPDATE scopes SET display_name = ?, description = ?, state = ?, updated_at = ? WHERE id = ?",
            (scope.display_name, scope.description, scope.state.value, scope.updated_at, scope.id),
        )

    def delete_scope(self, scope_id: int) -> None:
        """The row stays under a name nobody can take, since archived messages still point to it."""
        self._cache.places = None
        self._db.execute(
            "UPDATE scopes SET slug = slug || ? || id, state = 'archived' WHERE id = ?", (GONE, scope_id)
        )

    def queue(self, tenant: str, scope: str, slug: str) -> Queue | None:
        return self._places().queues.get((tenant, scope, slug))

    def queue_by_id(self, queue_id: int) -> Queue:
        return self._places().queues_by_id[queue_id]

    def queues_of(self, scope_id: int) -> list[Queue]:
        return [queue for queue in self.all_queues() if queue.scope_id == scope_id]

    def all_queues(self, *, deleted: bool = False) -> list[Queue]:
        return read_queues(self._db, deleted=True) if deleted else list(self._places().queues_by_id.values())

    def insert_queue(self, queue: Queue) -> int:
        self._cache.places = None
        self._db.execute(
            "INSERT INTO queues (scope_id, slug, state, system, settings, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                queue.scope_id,
                queue.slug,
                queue.state.value,
                queue.system,
                jsontext.text(queue.settings),
                queue.created_at,
                queue.updated_at,
            ),
        )
        return self._db.last_insert_rowid()

    def update_queue(self, queue: Queue) -> None:
        self._cache.places = None
        self._db.execute(
            "UPDATE queues SET state = ?, settings = ?, updated_at = ? WHERE id = ?",
            (queue.state.value, jsontext.text(queue.settings), queue.updated_at, queue.id),
        )

    def delete_queue(self, queue_id: int) -> None:
        self._cache.places = None
        self._db.execute("UPDATE queues SET deleted_at = updated_at WHERE id = ?", (queue_id,))

    # messages

    def insert(self, rows: Sequence[Row], contents: Sequence[Content]) -> None:
        seq = self._message_seq
        for row in rows:
            seq += 1
            row.seq = seq
        first, self._message_seq = self._message_seq + 1, seq
        self._db.executemany(SQL["insert_message"], map(_astuple, rows))
        self._db.executemany(
            SQL["insert_content"],
            ((number, *_astuple(content)) for number, content in enumerate(contents, first)),
        )

    def insert_alike(
        self, row: Row, content: Content, ids: Sequence[str], bodies: Sequence[bytes | None]
    ) -> None:
        first = row.seq = self._message_seq + 1
        self._message_seq += len(ids)
        if len(ids) == 1:
            row.id = ids[0]
            row.correlation_id = row.correlation_id or ids[0]
            content.body = bodies[0]
            self._db.execute(SQL["insert_message"], _astuple(row))
            self._db.execute(SQL["insert_content"], (first, *_astuple(content)))
            return
        self._db.execute(SQL["insert_alike"], (*_astuple(row), jsontext.text(ids)))
        of_content = _astuple(content)
        before, after = of_content[:_BODY], of_content[_BODY + 1 :]
        self._db.executemany(
            SQL["insert_content"],
            [(number, *before, body, *after) for number, body in enumerate(bodies, first)],
        )

    def save_claimed(self, rows: Sequence[Row]) -> None:
        self._db.executemany(
            SQL["save_claimed"],
            [
                (
                    row.lease_until,
                    row.claimed_at,
                    row.attempts,
                    row.claims,
                    row.token,
                    row.claimed_by,
                    row.seq,
                )
                for row in rows
            ],
        )

    def save_completed(self, rows: Sequence[Row]) -> None:
        self._db.executemany(SQL["save_completed"], [(row.finished_at, row.result, row.seq) for row in rows])

    def save(self, rows: Sequence[Row]) -> None:
        changed = []
        for row in rows:
            values = _astuple(row)
            changed.append((*[values[i] for i in _MUTABLE_OF], row.seq))
        self._db.executemany(SQL["save"], changed)

    def relocate(self, rows: Sequence[Row]) -> None:
        changed = []
        for row in rows:
            values = _astuple(row)
            place = (row.queue_id, row.line, row.origin_queue_id, row.seq)
            changed.append((*[values[i] for i in _MUTABLE_OF], *place))
        self._db.executemany(SQL["relocate"], changed)

    def _rows(self, name: str, bindings: tuple[Any, ...]) -> list[Row]:
        return [Row(*row) for row in self._db.execute(SQL[name], bindings)]

    def _stored(self, name: str, bindings: tuple[Any, ...]) -> list[Stored]:
        return [stored(row) for row in self._db.execute(SQL[name], bindings)]

    def row(self, message_id: str) -> Row | None:
        found = self._db.execute(SQL["row"], (message_id,)).fetchone()
        return Row(*found) if found else None

    def rows(self, message_ids: Sequence[str]) -> list[Row]:
        known = [message_id for message_id in message_ids if is_text(message_id)]
        return self._rows("rows", (jsontext.text(known),))

    def content(self, row: Row) -> Content:
        return Content(*one(self._db.execute(SQL["content"], (row.seq,))))

    def archived(self, message_id: str) -> Stored | None:
        found = self._stored("archived", (message_id,))
        return found[0] if found else None

    def by_key(self, queue_id: int, idempotency_key: str) -> Stored | None:
        for name in ("by_key", "archived_by_key"):
            found = self._stored(name, (queue_id, idempotency_key))
            if found:
                return found[0]
        return None

    def pending(self, line: int, limit: int) -> list[Stored]:
        return self._stored("pending", (line, limit))

    def due(self, now: int, limit: int) -> list[Row]:
        return self._rows("due", (now, limit))

    def next_due(self) -> int | None:
        found = self._db.execute(SQL["next_due"]).fetchone()
        return found[0] if found else None

    def open_rows(self, queue_id: int, after_seq: int, limit: int) -> list[Row]:
        return self._rows("open_rows", (queue_id, after_seq, limit))

    def rows_in_state(self, queue_id: int, state: str, limit: int) -> list[Row]:
        return self._rows("rows_in_state", (queue_id, str(state), limit))

    def originals(self, queue_id: int) -> list[Stored]:
        return self._stored("originals", (queue_id,))

    def open_deliveries(self, parent_id: str) -> int:
        return one(self._db.execute(SQL["open_deliveries"], (parent_id,)))[0]

    def deliveries(self, parent_id: str) -> list[Row]:
        return self._rows("deliveries", (parent_id,))

    def on_line(self, line: int) -> list[Row]:
        if line > 0:
            return self._rows("on_line", (line, line))
        queue = self._db.execute("SELECT queue_id FROM subscriptions WHERE id = ?", (-line,)).fetchone()
        return self._rows("on_line", (queue[0], line)) if queue else []

    def ended_in(self, queue_id: int, limit: int) -> list[Row]:
        return self._rows("ended_in", (queue_id, limit))

    def dead_from(self, queue_id: int) -> int:
        queue = self.queue_by_id(queue_id)
        home = self.queue(queue.tenant, queue.scope, DEAD_LETTER)
        assert home is not None, "every scope has its dead letters"
        return one(self._db.execute(SQL["dead_from"], (home.id, queue_id)))[0]

    def count(self, queue_id: int, subscription_id: int, state: str, delta: int) -> None:
        key = (queue_id, subscription_id, state)
        self._deltas[key] = self._deltas.get(key, 0) + delta

    def counts(self, queue_id: int, subscription_id: int = 0) -> Counts:
        known, deltas = self._cache.counts, self._deltas
        values = {}
        for state in Counts.__struct_fields__:
            key = (queue_id, subscription_id, state)
            values[state] = known.get(key, 0) + deltas.get(key, 0)
        return Counts(**values)

    # subscriptions, schemas, records, positions

    def subscriptions(self, queue_id: int) -> list[Subscription]:
        return records.read_subscriptions(self._db, queue_id, self.queue_by_id(queue_id).path)

    def insert_subscription(self, subscription: Subscription) -> int:
        self._db.execute(
            "INSERT INTO subscriptions (queue_id, name, created_at) VALUES (?, ?, ?)",
            (subscription.queue_id, subscription.name, subscription.created_at),
        )
        return self._db.last_insert_rowid()

    def delete_subscription(self, subscription_id: int) -> None:
        self._db.execute("DELETE FROM subscriptions WHERE id = ?", (subscription_id,))
        self._db.execute("DELETE FROM seen WHERE subscription_id = ?", (subscription_id,))

    def seen(self, subscription_id: int, key: str, now: int) -> bool:
        self._db.execute("INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", (subscription_id, key, now))
        return self._db.changes() == 0

    def schema(self, scope_id: int, name: str, version: int | None) -> Schema | None:
        return records.read_schema(self._db, self.scope_by_id(scope_id), name, version)

    def insert_schema(self, scope_id: int, schema: Schema) -> None:
        self._db.execute(
            "INSERT INTO schemas VALUES (?, ?, ?, ?, ?)",
            (scope_id, schema.name, schema.version, jsontext.text(schema.document), schema.created_at),
        )

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
        self._db.execute(
            "INSERT INTO records (tenant, kind, key, data, correlation_id, message_id, created_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (tenant, kind, key, data, correlation_id, message_id, now),
        )
        return self._db.last_insert_rowid()

    def document(self, tenant: str, kind: str, key: str) -> Document | None:
        return documents.read_document(self._db, tenant, kind, key)

    def save_document(self, tenant: str, document: Document) -> None:
        documents.write_document(self._db, tenant, document)

    def set_position(self, position: Position) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?)",
            (position.name, position.seq, position.hold, position.updated_at),
        )

    def positions(self) -> list[Position]:
        return records.read_positions(self._db)

    # ledger

    def append(self, event: EventDraft) -> None:
        self._events.append(event)

    def head_seq(self) -> int:
        return self._cache.head.seq

    # housekeeping

    def aging(self, entered_before: int, cap: int, after_seq: int, limit: int) -> list[Row]:
        rows: list[Row] = []
        for queue in self.all_queues():
            if queue.settings.ordering is Ordering.PRIORITY:
                rows += self._rows("aging", (queue.id, after_seq, entered_before, cap, limit))
        rows.sort(key=lambda row: row.seq)
        return rows[:limit]

    def finished(self, before: int, limit: int) -> list[Row]:
        return self._rows("finished", (before, limit))

    def dead_before(self, before: int, limit: int) -> list[Row]:
        rows: list[Row] = []
        for queue in self.all_queues():
            if queue.slug == DEAD_LETTER and len(rows) < limit:
                rows += self._rows("dead_before", (queue.id, before, limit - len(rows)))
        return rows

    def archive(self, rows: Sequence[Row]) -> None:
        head = self._cache.head.seq + len(self._events)
        self._db.executemany(SQL["archive"], [(head, row.seq) for row in rows])
        self._db.executemany(SQL["drop_message"], [(row.seq,) for row in rows])
        self._db.executemany(SQL["drop_content"], [(row.seq,) for row in rows])

    def report_run(self, run: HousekeeperRun) -> None:
        self._db.execute("INSERT OR REPLACE INTO housekeepers VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _astuple(run))

    def run_of(self, name: str) -> HousekeeperRun | None:
        return next((run for run in records.read_runs(self._db) if run.name == name), None)

    def lead(self, name: str, holder: str, now: int, until: int) -> bool:
        found = self._db.execute("SELECT holder, until FROM leaders WHERE name = ?", (name,)).fetchone()
        if found is not None and found[0] != holder and found[1] > now:
            return False
        self._db.execute("INSERT OR REPLACE INTO leaders VALUES (?, ?, ?)", (name, holder, until))
        return until > now

    def end_leaderships(self, holder: str, now: int) -> int:
        self._db.execute(
            "UPDATE leaders SET until = ?1 WHERE until > ?1"
            " AND (holder = ?2 OR substr(holder, 1, length(?2) + 1) = ?2 || '/')",
            (now, holder),
        )
        return self._db.changes()

    def claimed_by(self, holder: str, limit: int) -> list[Row]:
        return self._rows("claimed_by", (holder, limit))

    def memo(self, name: str) -> str | None:
        found = self._db.execute("SELECT value FROM memos WHERE name = ?", (name,)).fetchone()
        return found[0] if found else None

    def set_memo(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO memos VALUES (?, ?)", (name, value))
