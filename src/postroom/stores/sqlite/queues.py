"""Scopes and queues as the store keeps them, held in memory by the one process that owns the file."""

from typing import Any

import apsw
import msgspec

from postroom.kernel import jsontext
from postroom.kernel.model import LifecycleState, Queue, QueueSettings, Scope

ALL_SCOPES = "SELECT id, tenant, slug, display_name, description, state, created_at, updated_at FROM scopes"
ALL_QUEUES = """
SELECT q.id, q.scope_id, s.tenant, s.slug, q.slug, q.state, q.system, q.settings, q.created_at, q.updated_at
FROM queues q JOIN scopes s ON s.id = q.scope_id WHERE q.deleted_at IS NULL OR ? ORDER BY q.id
"""


def read_scopes(db: apsw.Connection) -> list[Scope]:
    return [
        Scope(
            id=id_,
            tenant=tenant,
            slug=slug,
            display_name=display_name,
            description=description,
            state=LifecycleState(state),
            created_at=created_at,
            updated_at=updated_at,
        )
        for id_, tenant, slug, display_name, description, state, created_at, updated_at in db.execute(
            ALL_SCOPES
        )
    ]


def read_queues(db: apsw.Connection, *, deleted: bool = False) -> list[Queue]:
    return [_queue(row) for row in db.execute(ALL_QUEUES, (deleted,))]


def _queue(row: tuple[Any, ...]) -> Queue:
    id_, scope_id, tenant, scope, slug, state, system, settings, created_at, updated_at = row
    return Queue(
        id=id_,
        scope_id=scope_id,
        tenant=tenant,
        scope=scope,
        slug=slug,
        state=LifecycleState(state),
        system=bool(system),
        settings=msgspec.convert(jsontext.decode(settings), QueueSettings),
        created_at=created_at,
        updated_at=updated_at,
    )


# Divides the name a deleted scope had from its number; no living scope may have it in its name.
GONE = "#"


class QueueCache:
    """A lookup that is thrown away and read again whenever a scope or queue changes."""

    def __init__(self, db: apsw.Connection) -> None:
        self.scopes_by_id = {scope.id: scope for scope in read_scopes(db)}
        self.scopes = {
            (scope.tenant, scope.slug): scope
            for scope in self.scopes_by_id.values()
            if GONE not in scope.slug
        }
        queues = read_queues(db)
        self.queues = {(queue.tenant, queue.scope, queue.slug): queue for queue in queues}
        self.queues_by_id = {queue.id: queue for queue in queues}
