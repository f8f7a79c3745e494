"""Scopes, queues, subscriptions, schemas and rules as processes remember them between transactions.

Each is read when it is first asked for, never all of them, and one directory stands for one version of the
store: after any change of what it holds, a new one begins empty.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from postroom.kernel.facts import ROOM, SCHEMA, schema_key, schema_prefix, to_schema
from postroom.kernel.model import Queue, Schema, Scope, Subscription
from postroom.kernel.ports import MANY, FactFilter, QueueFilter, Reads, ScopeFilter

T = TypeVar("T")


class Directory:
    def __init__(self) -> None:
        self._scopes: dict[tuple[str, str], Scope] = {}
        self._scopes_by_id: dict[int, Scope] = {}
        self._queues: dict[tuple[str, str, str], Queue] = {}
        self._queues_by_id: dict[int, Queue] = {}
        self._subscriptions: dict[int, list[Subscription]] = {}
        self.has_rules: dict[int, bool] = {}
        """By scope; asked for with every message."""
        self.notes: dict[Any, Any] = {}
        """What others found out from the same version, by keys of their own."""

    def scope(self, reads: Reads, tenant: str, slug: str) -> Scope | None:
        found = self._scopes.get((tenant, slug))
        if found is None:
            for found in reads.scopes(ScopeFilter(tenant=tenant, slug=slug), 1):
                self._scopes[tenant, slug] = self._scopes_by_id[found.id] = found
        return found

    def scope_by_id(self, reads: Reads, scope_id: int) -> Scope:
        found = self._scopes_by_id.get(scope_id)
        if found is None:
            [found] = reads.scopes(ScopeFilter(ids=(scope_id,)), 1)
            self._scopes_by_id[scope_id] = found
        return found

    def queue(self, reads: Reads, tenant: str, scope: str, slug: str) -> Queue | None:
        found = self._queues.get((tenant, scope, slug))
        if found is None:
            for found in reads.queues(QueueFilter(tenant=tenant, scope=scope, slug=slug), 1):
                self._queues[tenant, scope, slug] = self._queues_by_id[found.id] = found
        return found

    def queue_by_id(self, reads: Reads, queue_id: int) -> Queue:
        found = self._queues_by_id.get(queue_id)
        if found is None:
            [found] = reads.queues(QueueFilter(ids=(queue_id,)), 1)
            self._queues_by_id[queue_id] = found
        return found

    def subscriptions(self, reads: Reads, queue_id: int) -> list[Subscription]:
        found = self._subscriptions.get(queue_id)
        if found is None:
            found = self._subscriptions[queue_id] = reads.subscriptions(queue_ids=(queue_id,))
        return found

    def schema(self, reads: Reads, scope: Scope, name: str, version: int | None) -> Schema | None:
        """That version, or the newest."""

        def find() -> Schema | None:
            if version is not None:
                facts = reads.facts([(ROOM, SCHEMA, schema_key(scope.id, name, version))])
            else:
                facts = reads.scan(FactFilter(kind=SCHEMA, prefix=schema_prefix(scope.id, name)), MANY)
            return to_schema(facts[-1], scope.slug) if facts else None

        return self.note((SCHEMA, scope.id, name, version), find)

    def note(self, key: Any, find: Callable[[], T]) -> T:
        """What was found out before under this key, or is now."""
        if key not in self.notes:
            self.notes[key] = find()
        return self.notes[key]
