"""Scopes, queues and subscriptions in SQL."""

from collections.abc import Sequence
from typing import Any

import msgspec

from postroom.kernel import jsontext
from postroom.kernel.model import LifecycleState, Queue, QueueSettings, Scope, Subscription
from postroom.kernel.ports import QueueFilter, ScopeFilter
from postroom.stores.sql.dialect import Dialect, SqlReads, SqlWrites

# Divides the name a deleted scope had from its number; no living scope may have it in its name.
GONE = "#"

_SCOPE = (
    "SELECT id, tenant, slug, display_name, description, state, created_at, updated_at FROM scopes WHERE "
)
_QUEUE = (
    "SELECT q.id, q.scope_id, s.tenant, s.slug, q.slug, q.state, q.system, q.settings, q.created_at,"
    " q.updated_at FROM "
)
_FROM_SCOPE = "scopes s CROSS JOIN queues q ON q.scope_id = s.id WHERE "
_FROM_QUEUE = "queues q CROSS JOIN scopes s ON s.id = q.scope_id WHERE "
_LIVING = "q.deleted_at IS NULL"
_SORTS = {
    "priority": "q.ordering = 'priority' AND ",
    "dead_letter": "q.slug = '_dead_letter' AND ",
    "retention": "q.retention_s IS NOT NULL AND ",
    "any": "",
}
_settings = msgspec.json.Decoder(QueueSettings).decode


def _to_scope(row: tuple[Any, ...]) -> Scope:
    id_, tenant, slug, display_name, description, state, created_at, updated_at = row
    return Scope(
        id=id_,
        tenant=tenant,
        slug=slug.partition(GONE)[0],
        display_name=display_name,
        description=description,
        state=LifecycleState(state),
        created_at=created_at,
        updated_at=updated_at,
    )


def _to_queue(row: tuple[Any, ...]) -> Queue:
    id_, scope_id, tenant, scope, slug, state, system, settings, created_at, updated_at = row
    return Queue(
        id=id_,
        scope_id=scope_id,
        tenant=tenant,
        scope=scope.partition(GONE)[0],
        slug=slug,
        state=LifecycleState(state),
        system=bool(system),
        settings=_settings(settings),
        created_at=created_at,
        updated_at=updated_at,
    )


def scope_statement(wanted: ScopeFilter, limit: int, dialect: Dialect) -> tuple[str, tuple[Any, ...]]:
    if wanted.ids is not None:
        where = dialect.among("id", "integer")
        return f"{_SCOPE}{where} ORDER BY id LIMIT ?", (dialect.bind_list(wanted.ids), limit)
    if wanted.slug is not None:
        return f"{_SCOPE}tenant = ? AND slug = ? LIMIT ?", (wanted.tenant, wanted.slug, limit)
    where = f"tenant = ? AND id > ? AND slug NOT LIKE '%{GONE}%'"
    return f"{_SCOPE}{where} ORDER BY id LIMIT ?", (wanted.tenant, wanted.after, limit)


def queue_statement(wanted: QueueFilter, limit: int, dialect: Dialect) -> tuple[str, tuple[Any, ...]]:
    """Each by the index that leads to it."""
    living = "1 = 1" if wanted.deleted else _LIVING
    if wanted.ids is not None:
        where = f"{dialect.among('q.id', 'integer')} AND {living} ORDER BY q.id LIMIT ?"
        return f"{_QUEUE}{_FROM_QUEUE}{where}", (dialect.bind_list(wanted.ids), limit)
    if wanted.sort is not None:
        where = f"{_SORTS[wanted.sort]}{living} AND q.id > ? ORDER BY q.id LIMIT ?"
        return f"{_QUEUE}{_FROM_QUEUE}{where}", (wanted.after[1], limit)
    if wanted.slug is not None:
        where = f"s.tenant = ? AND s.slug = ? AND q.slug = ? AND {_LIVING} LIMIT ?"
        return f"{_QUEUE}{_FROM_SCOPE}{where}", (wanted.tenant, wanted.scope, wanted.slug, limit)
    if wanted.scope_id is not None or wanted.scope is not None:
        # Of one scope: its queues in the order in which they were made.
        where, bindings = "s.id = ?", (wanted.scope_id,)
        if wanted.scope_id is None:
            where, bindings = "s.tenant = ? AND s.slug = ?", (wanted.tenant, wanted.scope)
        where += f" AND q.id > ? AND {living} ORDER BY q.id LIMIT ?"
        return f"{_QUEUE}{_FROM_SCOPE}{where}", (*bindings, wanted.after[1], limit)
    where = f"s.tenant = ? AND s.id >= ? AND (s.id > ? OR q.id > ?) AND {living} ORDER BY s.id, q.id LIMIT ?"
    scope_id, queue_id = wanted.after
    return f"{_QUEUE}{_FROM_SCOPE}{where}", (wanted.tenant, scope_id, scope_id, queue_id, limit)


class QueueReads(SqlReads):
    def scopes(self, wanted: ScopeFilter, limit: int) -> list[Scope]:
        if GONE in (wanted.slug or ""):
            return []
        rows = self._db.fetch(*scope_statement(wanted, limit, self._dialect))
        return [_to_scope(row) for row in rows]

    def queues(self, wanted: QueueFilter, limit: int) -> list[Queue]:
        if GONE in (wanted.scope or ""):
            return []
        rows = self._db.fetch(*queue_statement(wanted, limit, self._dialect))
        return [_to_queue(row) for row in rows]

    def subscriptions(
        self, *, queue_ids: Sequence[int] | None = None, ids: Sequence[int] | None = None
    ) -> list[Subscription]:
        name, wanted = ("subscriptions_by_id", ids) if queue_ids is None else ("subscriptions_of", queue_ids)
        found = [
            Subscription(
                id=id_,
                queue_id=queue_id,
                queue=f"{scope.partition(GONE)[0]}/{slug}",
                name=found,
                created_at=created_at,
            )
            for id_, queue_id, scope, slug, found, created_at in self._db.fetch(
                self._sql[name], (self._dialect.bind_list(wanted or ()),)
            )
        ]
        return sorted(found, key=lambda each: each.id)


class QueueWrites(QueueReads, SqlWrites):
    def _insert(self, table: str, names: Sequence[str], values: Sequence[Any]) -> int:
        """The number of the new row."""
        raise NotImplementedError

    def save_scope(self, scope: Scope, *, deleted: bool = False) -> int:
        """A deleted one stays under a name nobody can take, since archived messages still point to it."""
        self._renew()
        told = (scope.display_name, scope.description, scope.state.value)
        if not scope.id:
            names = (
                "tenant",
                "slug",
                "display_name",
                "description",
                "state",
                "created_at",
                "updated_at",
            )
            values = (scope.tenant, scope.slug, *told, scope.created_at, scope.updated_at)
            return self._insert("scopes", names, values)
        slug = scope.slug
        if deleted:
            slug, told = f"{slug}{GONE}{scope.id}", (*told[:2], LifecycleState.ARCHIVED.value)
        self._out.write(self._sql["update_scope"], (slug, *told, scope.updated_at, scope.id))
        return scope.id

    def save_queue(self, queue: Queue, *, deleted: bool = False) -> int:
        self._renew()
        state, settings = queue.state.value, jsontext.text(queue.settings)
        if not queue.id:
            names = ("scope_id", "slug", "state", "system", "settings", "created_at", "updated_at")
            times = (queue.created_at, queue.updated_at)
            values = (queue.scope_id, queue.slug, state, queue.system, settings, *times)
            return self._insert("queues", names, values)
        deleted_at = queue.updated_at if deleted else None
        self._out.write(self._sql["update_queue"], (state, settings, queue.updated_at, deleted_at, queue.id))
        return queue.id

    def save_subscription(self, subscription: Subscription, *, deleted: bool = False) -> int:
        self._renew()
        if deleted:
            self._out.write(self._sql["drop_subscription"], (subscription.id,))
            return subscription.id
        names = ("queue_id", "name", "created_at")
        values = (subscription.queue_id, subscription.name, subscription.created_at)
        return self._insert("subscriptions", names, values)

    def prune_queues(self, limit: int) -> list[Queue]:
        self._out.write(self._sql["drop_idle_figures"])
        unused: list[int] = []
        after = 0
        while len(unused) < limit and (rows := self._db.fetch(self._sql["deleted_queues"], (after, limit))):
            unused += [queue_id for queue_id, home in rows if not self._is_named(queue_id, home)]
            after = rows[-1][0]
        if not unused:
            return []
        self._renew()
        unused = unused[:limit]
        pruned = self.queues(QueueFilter(ids=tuple(unused), deleted=True), limit)
        numbers = self._dialect.bind_list(unused)
        self._out.write(self._sql["drop_queues"], (numbers,))
        self._out.write(self._sql["drop_figures"], (numbers,))
        scopes = self._dialect.bind_list(sorted({queue.scope_id for queue in pruned}))
        self._out.write(self._sql["drop_scopes"], (scopes,))
        return pruned

    def _is_named(self, queue_id: int, home: int | None) -> bool:
        """Whether a message lies in this queue, or is a dead letter that came from it."""
        if any(self._db.fetch(self._sql[name], (queue_id,)) for name in ("has_message", "has_archived")):
            return True
        names = ("has_message_from", "has_archived_from") if home is not None else ()
        return any(self._db.fetch(self._sql[name], (home, queue_id)) for name in names)
