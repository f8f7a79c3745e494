"""Reads of what is committed, on a connection of their own and in one snapshot."""

from typing import Any

import apsw

from postroom.kernel.budgets.model import Budget
from postroom.kernel.ledger import GENESIS, Event, Folded, Head, unroll
from postroom.kernel.model import Counts, Document, Position, Queue, Record, Schema, Scope, Subscription
from postroom.kernel.ports import HousekeeperRun, MessageFilter
from postroom.kernel.rows import Stored
from postroom.kernel.states import State
from postroom.stores.sqlite import documents, listing, records
from postroom.stores.sqlite.audit import SqliteServiceReads
from postroom.stores.sqlite.budgets import SqliteBudgetReads
from postroom.stores.sqlite.pruning import read_standing, read_standing_accounts
from postroom.stores.sqlite.queues import GONE, read_queues, read_scopes
from postroom.stores.sqlite.statements import SQL, one
from postroom.stores.sqlite.transaction import stored

ALL_STATES = """
SELECT m.id, s.slug, q.slug, m.state, m.attempts FROM messages m
JOIN queues q ON q.id = m.queue_id JOIN scopes s ON s.id = q.scope_id
UNION ALL
SELECT m.id, s.slug, q.slug, m.state, m.attempts FROM archive m
JOIN queues q ON q.id = m.queue_id JOIN scopes s ON s.id = q.scope_id
"""


class SqliteReader(SqliteBudgetReads, SqliteServiceReads):
    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def get(self, message_id: str) -> Stored | None:
        found = self._db.execute(SQL["stored"], (message_id,)).fetchone()
        if found is not None:
            return stored(found)
        found = self._db.execute(SQL["archived"], (message_id,)).fetchone()
        if found is None:
            return None
        message = stored(found)
        message.archived = True
        return message

    def page(self, wanted: MessageFilter, after: int | None, limit: int) -> list[Stored]:
        places = listing.ListedPlaces(
            scopes={(scope.tenant, scope.slug): scope.id for scope in read_scopes(self._db)},
            queues={(queue.tenant, queue.path): queue.id for queue in read_queues(self._db)},
        )
        clauses = listing.clauses(wanted, places)
        if clauses is None:
            return []
        found = []
        for archived in listing.parts(wanted):
            sql, bindings = listing.statement(wanted, clauses, after, limit, archived=archived)
            for row in self._db.execute(sql, bindings):
                message = stored(row)
                message.archived = archived
                found.append(message)
        found.sort(key=lambda message: message.row.seq, reverse=wanted.newest_first)
        return found[:limit]

    def peek(self, line: int, limit: int) -> list[Stored]:
        return [stored(row) for row in self._db.execute(SQL["pending"], (line, limit))]

    def scope(self, tenant: str, slug: str) -> Scope | None:
        return next((scope for scope in self.scopes(tenant) if scope.slug == slug), None)

    def scopes(self, tenant: str) -> list[Scope]:
        return [scope for scope in read_scopes(self._db) if scope.tenant == tenant and GONE not in scope.slug]

    def queue(self, tenant: str, scope: str, slug: str) -> Queue | None:
        wanted = (tenant, scope, slug)
        return next((q for q in read_queues(self._db) if (q.tenant, q.scope, q.slug) == wanted), None)

    def queues(self, tenant: str, scope: str | None) -> list[Queue]:
        return [
            queue
            for queue in read_queues(self._db)
            if queue.tenant == tenant and (scope is None or queue.scope == scope)
        ]

    def queue_names(self) -> dict[int, tuple[str, str]]:
        rows = self._db.execute(
            "SELECT q.id, s.slug, q.slug FROM queues q JOIN scopes s ON s.id = q.scope_id"
        )
        return {queue_id: (scope.partition(GONE)[0], slug) for queue_id, scope, slug in rows}

    def counts(self, queue_id: int, subscription_id: int = 0) -> Counts:
        return Counts(**dict(self._db.execute(SQL["peek_count"], (queue_id, subscription_id))))

    def subscriptions(self, queue_id: int) -> list[Subscription]:
        scope, slug = self.queue_names()[queue_id]
        return records.read_subscriptions(self._db, queue_id, f"{scope}/{slug}")

    def subscription_names(self) -> dict[int, str]:
        return dict(self._db.execute("SELECT id, name FROM subscriptions"))

    def schemas(self, tenant: str, scope: str) -> list[Schema]:
        found = self.scope(tenant, scope)
        return records.read_schemas(self._db, found) if found else []

    def records(self, tenant: str, kind: str, key: str | None, after: int, limit: int) -> list[Record]:
        return records.read_records(self._db, tenant, kind, key, after, limit)

    def latest_record(self, tenant: str, kind: str, key: str) -> Record | None:
        return records.read_latest(self._db, tenant, kind, key)

    def record(self, tenant: str, number: int) -> Record | None:
        return records.read_record(self._db, tenant, number)

    def document(self, tenant: str, kind: str, key: str) -> Document | None:
        return documents.read_document(self._db, tenant, kind, key)

    def documents(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Document]:
        return documents.read_documents(self._db, tenant, kind, prefix, after, limit)

    def document_changes(self, tenant: str, kind: str) -> int:
        return documents.count_changes(self._db, tenant, kind)

    def positions(self) -> list[Position]:
        return records.read_positions(self._db)

    def housekeepers(self) -> list[HousekeeperRun]:
        return records.read_runs(self._db)

    def leader(self, name: str, now: int) -> str | None:
        found = self._db.execute(
            "SELECT holder FROM leaders WHERE name = ? AND until > ?", (name, now)
        ).fetchone()
        return found[0] if found else None

    def next_due(self) -> int | None:
        found = self._db.execute(SQL["next_due"]).fetchone()
        return found[0] if found else None

    def events(self, after: int, limit: int) -> list[Event]:
        rows: list[tuple[Any, ...]] = self._db.execute(SQL["events"], (after, limit)).fetchall()
        if not rows:
            return []
        before = rows[0][0] - 1
        found = self._db.execute(SQL["event_hash"], (before,)).fetchone()
        anchor = self.anchor()
        previous = found[0] if found else anchor.hash if anchor.seq == before else GENESIS
        return list(unroll(rows, previous))

    def standing(self) -> tuple[dict[str, Folded], dict[tuple[str, str], Budget]]:
        return read_standing(self._db), read_standing_accounts(self._db)

    def head(self) -> Head:
        return self._chain("head")

    def anchor(self) -> Head:
        return self._chain("anchor")

    def _chain(self, name: str) -> Head:
        seq, hash_, time, _ = one(self._db.execute(SQL["chain"], (name,)))
        return Head(seq, hash_, time)

    def folded(self) -> dict[str, Folded]:
        return {
            id_: Folded(f"{scope.partition(GONE)[0]}/{queue}", State(state), attempts)
            for id_, scope, queue, state, attempts in self._db.execute(ALL_STATES)
        }
