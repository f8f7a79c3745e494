"""Scopes, queues, subscriptions and schemas, and how many messages each place holds."""

from collections.abc import Callable, Iterable

import msgspec

from postroom.kernel import jsontext
from postroom.kernel.model import Counts, LifecycleState, Ordering, Queue, Schema, Scope, Subscription
from postroom.kernel.states import State
from postroom.stores.memory.journal import Journal

_schema = msgspec.json.Decoder(Schema)


class MemoryQueues:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._last_ids: dict[str, int] = {}
        self._scopes: dict[int, Scope] = {}
        self._scope_ids: dict[tuple[str, str], int] = {}
        self._queues: dict[int, Queue] = {}
        self._deleted: dict[int, Queue] = {}
        self._queue_ids: dict[tuple[str, str, str], int] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._schemas: dict[tuple[int, str, int], bytes] = {}
        self._counts: dict[tuple[int, int, str], int] = {}
        # Names outlive their places: messages of a deleted queue stay readable in the archive.
        self._queue_names: dict[int, tuple[str, str]] = {}

    def _next_id(self, kind: str) -> int:
        number = self._last_ids.get(kind, 0) + 1
        self._journal.set(self._last_ids, kind, number)
        return number

    # scopes

    def scope(self, tenant: str, slug: str) -> Scope | None:
        scope_id = self._scope_ids.get((tenant, slug))
        return self._scopes[scope_id] if scope_id is not None else None

    def scope_by_id(self, scope_id: int) -> Scope:
        return self._scopes[scope_id]

    def scopes(self, tenant: str) -> list[Scope]:
        found = (scope for scope in self._scopes.values() if scope.tenant == tenant)
        return sorted(found, key=lambda scope: scope.id)

    def insert_scope(self, scope: Scope) -> int:
        place = (scope.tenant, scope.slug)
        if place in self._scope_ids:
            raise ValueError(f"there is a scope {scope.slug} already")
        scope = msgspec.structs.replace(scope, id=self._next_id("scope"))
        self._journal.set(self._scope_ids, place, scope.id)
        self.update_scope(scope)
        return scope.id

    def update_scope(self, scope: Scope) -> None:
        scope = msgspec.structs.replace(scope, state=LifecycleState(scope.state))
        self._journal.set(self._scopes, scope.id, scope)

    def delete_scope(self, scope_id: int) -> None:
        scope = self._journal.delete(self._scopes, scope_id)
        self._journal.delete(self._scope_ids, (scope.tenant, scope.slug))
        for key in [key for key in self._schemas if key[0] == scope_id]:
            self._journal.delete(self._schemas, key)

    # queues

    def queue(self, tenant: str, scope: str, slug: str) -> Queue | None:
        queue_id = self._queue_ids.get((tenant, scope, slug))
        return self._queues[queue_id] if queue_id is not None else None

    def queue_by_id(self, queue_id: int) -> Queue:
        return self._queues[queue_id]

    def queues(self, *, deleted: bool = False) -> list[Queue]:
        found = [*self._queues.values(), *(self._deleted.values() if deleted else ())]
        return sorted(found, key=lambda queue: queue.id)

    def queues_of(self, scope_id: int) -> list[Queue]:
        return [queue for queue in self.queues() if queue.scope_id == scope_id]

    def queues_named(self, tenant: str, scope: str | None) -> list[Queue]:
        found = (q for q in self._queues.values() if q.tenant == tenant and scope in (None, q.scope))
        return sorted(found, key=lambda queue: queue.id)

    def by_priority(self) -> Iterable[int]:
        """Queues whose messages may age."""
        return [q.id for q in self._queues.values() if q.settings.ordering is Ordering.PRIORITY]

    def insert_queue(self, queue: Queue) -> int:
        place = (queue.tenant, queue.scope, queue.slug)
        if place in self._queue_ids:
            raise ValueError(f"there is a queue {queue.path} already")
        queue = msgspec.structs.replace(queue, id=self._next_id("queue"))
        self._journal.set(self._queue_ids, place, queue.id)
        self._journal.set(self._queue_names, queue.id, (queue.scope, queue.slug))
        self.update_queue(queue)
        return queue.id

    def update_queue(self, queue: Queue) -> None:
        queue = msgspec.structs.replace(queue, state=LifecycleState(queue.state))
        self._journal.set(self._queues, queue.id, queue)

    def delete_queue(self, queue_id: int) -> None:
        queue = self._journal.delete(self._queues, queue_id)
        self._journal.set(self._deleted, queue_id, queue)
        self._journal.delete(self._queue_ids, (queue.tenant, queue.scope, queue.slug))
        for key in [key for key in self._counts if key[0] == queue_id]:
            self._journal.delete(self._counts, key)

    def queue_names(self) -> dict[int, tuple[str, str]]:
        return dict(sorted(self._queue_names.items()))

    def prune(self, named: Callable[[int], bool], limit: int) -> int:
        """Forget deleted queues that are in no message's name."""
        old = [queue_id for queue_id in self._deleted if not named(queue_id)][:limit]
        for queue_id in old:
            self._journal.delete(self._deleted, queue_id)
            self._journal.delete(self._queue_names, queue_id)
        return len(old)

    # subscriptions

    def subscriptions(self, queue_id: int) -> list[Subscription]:
        found = (s for s in self._subscriptions.values() if s.queue_id == queue_id)
        return sorted(found, key=lambda subscription: subscription.id)

    def insert_subscription(self, subscription: Subscription) -> int:
        subscription = msgspec.structs.replace(subscription, id=self._next_id("subscription"))
        self._journal.set(self._subscriptions, subscription.id, subscription)
        return subscription.id

    def delete_subscription(self, subscription_id: int) -> None:
        self._journal.delete(self._subscriptions, subscription_id)

    def subscription_names(self) -> dict[int, str]:
        return {number: subscription.name for number, subscription in self._subscriptions.items()}

    def queue_of_line(self, line: int) -> int | None:
        """A line is a queue, or (below zero) a subscription of one."""
        if line > 0:
            return line
        subscription = self._subscriptions.get(-line)
        return subscription.queue_id if subscription is not None else None

    # schemas, kept as text so that nobody can change a version that is there

    def schema(self, scope_id: int, name: str, version: int | None) -> Schema | None:
        if version is None:
            versions = [key[2] for key in self._schemas if key[:2] == (scope_id, name)]
            version = max(versions, default=0)
        kept = self._schemas.get((scope_id, name, version))
        return _schema.decode(kept) if kept is not None else None

    def insert_schema(self, scope_id: int, schema: Schema) -> None:
        self._journal.set(self._schemas, (scope_id, schema.name, schema.version), jsontext.encode(schema))

    def schemas(self, scope_id: int) -> list[Schema]:
        return [_schema.decode(self._schemas[key]) for key in sorted(self._schemas) if key[0] == scope_id]

    # counts

    def count(self, queue_id: int, subscription_id: int, state: str, delta: int) -> None:
        key = (queue_id, subscription_id, state)
        self._journal.set(self._counts, key, self._counts.get(key, 0) + delta)

    def counts(self, queue_id: int, subscription_id: int) -> Counts:
        return Counts(
            **{state.value: self._counts.get((queue_id, subscription_id, state), 0) for state in State}
        )
