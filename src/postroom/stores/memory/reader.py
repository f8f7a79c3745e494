"""Reads of what is committed. The store holds its lock while a reader is in use."""

import sys
from copy import copy

from postroom.kernel.budgets.model import Budget
from postroom.kernel.ledger import Event, Folded, Head
from postroom.kernel.model import Counts, Document, Position, Queue, Record, Schema, Scope, Subscription
from postroom.kernel.ports import HousekeeperRun, MessageFilter
from postroom.kernel.rows import Stored
from postroom.kernel.states import State
from postroom.stores.memory.audit import MemoryServiceReads
from postroom.stores.memory.budgets import MemoryBudgetReads
from postroom.stores.memory.filters import fits
from postroom.stores.memory.tables import Tables


class MemoryReader(MemoryBudgetReads, MemoryServiceReads):
    def __init__(self, tables: Tables) -> None:
        self._places = tables.places
        self._messages = tables.messages
        self._notes = tables.notes
        self._documents = tables.documents
        self._accounts = tables.accounts
        self._chain = tables.chain
        self._filing = tables.filing

    # messages

    def get(self, message_id: str) -> Stored | None:
        return self._messages.stored(message_id)

    def page(self, wanted: MessageFilter, after: int | None, limit: int) -> list[Stored]:
        fitting = fits(wanted, self._places)
        found: list[Stored] = []
        if fitting is None or limit <= 0:
            return found
        for row, content, archived in self._messages.walk(after, newest_first=wanted.newest_first):
            if fitting(row, content):
                found.append(Stored(copy(row), copy(content), archived))
                if len(found) == limit:
                    break
        return found

    def next_due(self) -> int | None:
        return self._messages.next_due()

    def peek(self, line: int, limit: int) -> list[Stored]:
        return self._messages.pending(line, limit)

    def folded(self) -> dict[str, Folded]:
        names = self._places.queue_names()
        return {
            row.id: Folded("/".join(names[row.queue_id]), State(row.state), row.attempts)
            for row, _, _ in self._messages.walk(None, newest_first=False)
        }

    # places

    def scope(self, tenant: str, slug: str) -> Scope | None:
        return self._places.scope(tenant, slug)

    def scopes(self, tenant: str) -> list[Scope]:
        return self._places.scopes(tenant)

    def queue(self, tenant: str, scope: str, slug: str) -> Queue | None:
        return self._places.queue(tenant, scope, slug)

    def queues(self, tenant: str, scope: str | None) -> list[Queue]:
        return self._places.queues_named(tenant, scope)

    def queue_names(self) -> dict[int, tuple[str, str]]:
        return self._places.queue_names()

    def counts(self, queue_id: int, subscription_id: int = 0) -> Counts:
        return self._places.counts(queue_id, subscription_id)

    def subscriptions(self, queue_id: int) -> list[Subscription]:
        return self._places.subscriptions(queue_id)

    def subscription_names(self) -> dict[int, str]:
        return self._places.subscription_names()

    def schemas(self, tenant: str, scope: str) -> list[Schema]:
        found = self._places.scope(tenant, scope)
        return self._places.schemas(found.id) if found is not None else []

    # beside the messages

    def records(self, tenant: str, kind: str, key: str | None, after: int, limit: int) -> list[Record]:
        return self._notes.records(tenant, kind, key, after, limit)

    def latest_record(self, tenant: str, kind: str, key: str) -> Record | None:
        found = self._notes.records(tenant, kind, key, 0, sys.maxsize)
        return found[-1] if found else None

    def record(self, tenant: str, number: int) -> Record | None:
        return self._notes.record(tenant, number)

    def document(self, tenant: str, kind: str, key: str) -> Document | None:
        return self._documents.find(tenant, kind, key)

    def documents(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Document]:
        return self._documents.listed(tenant, kind, prefix, after, limit)

    def document_changes(self, tenant: str, kind: str) -> int:
        return self._documents.changes(tenant, kind)

    def positions(self) -> list[Position]:
        return self._notes.positions()

    def housekeepers(self) -> list[HousekeeperRun]:
        return self._notes.runs()

    def leader(self, name: str, now: int) -> str | None:
        return self._notes.leader(name, now)

    # ledger

    def events(self, after: int, limit: int) -> list[Event]:
        return self._chain.events(after, limit)

    def standing(self) -> tuple[dict[str, Folded], dict[tuple[str, str], Budget]]:
        return dict(self._chain.messages), dict(self._chain.accounts)

    def head(self) -> Head:
        return self._chain.head

    def anchor(self) -> Head:
        return self._chain.anchor
