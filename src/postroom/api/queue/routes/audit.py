"""The audit of a scope: every gated call, allowed or refused; and everything of one conversation in order."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path

from postroom.api.queue.access import needs, visible_queues
from postroom.api.queue.cursors import Cursor, Limit
from postroom.api.queue.envelopes import many
from postroom.api.queue.request_context import RequestContext, Visiting
from postroom.api.queue.views import when
from postroom.api.responses import Json
from postroom.clock import from_datetime
from postroom.kernel import jsontext
from postroom.kernel.ledger import Event
from postroom.kernel.model import Queue
from postroom.kernel.ports import MessageFilter, Reader
from postroom.kernel.service_ports import AuditEntry, AuditFilter

MOST_STEPS = 10_000


def shown(visit: RequestContext, entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "tenant_id": entry.tenant,
        "scope_id": visit.opaque.scope(entry.scope_id) if entry.scope_id else None,
        "queue_id": visit.opaque.queue(entry.queue_id) if entry.queue_id else None,
        "message_id": entry.message_id,
        "correlation_id": entry.correlation_id,
        "event_type": entry.event_type,
        "permission": entry.permission,
        "allowed": entry.allowed,
        "status": entry.status,
        "actor_type": entry.actor_type,
        "actor_id": entry.actor_id,
        "request_id": entry.request_id,
        "details": jsontext.decode(entry.details),
        "created_at": when(entry.created_at),
    }


# Numbers that count over all tenants tell nothing to one of them.
_COUNTED = frozenset({"subscription", "record"})


def _step(event: Event) -> dict[str, Any]:
    kind, _, name = event.actor.partition(":")
    details = {name: value for name, value in event.details.items() if name not in _COUNTED}
    return {
        "event_type": event.type,
        "queue": event.queue,
        "message_id": event.message_id,
        "correlation_id": event.correlation_id,
        "causation_id": event.causation_id,
        "actor_type": kind if name else "system_agent",
        "actor_id": name or event.actor,
        "details": details,
        "created_at": when(event.time),
    }


def _narrowed(wanted: AuditFilter, queues: list[Queue] | None) -> AuditFilter:
    """Calls about queues that the caller may not look into would tell of them."""
    if queues is None:
        return wanted
    return msgspec.structs.replace(wanted, queue_ids=tuple(queue.id for queue in queues))


def add(routes: APIRouter) -> None:
    @routes.get("/scopes/{scope_id}/audit", openapi_extra=needs("view", "audit.read"))
    async def read_audit(
        visit: Visiting,
        scope_id: str,
        event_type: str | None = None,
        actor_id: str | None = None,
        correlation_id: str | None = None,
        message_id: str | None = None,
        allowed: bool | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Json:
        """Newest first. The calls of a moment ago are there: an answer is sent after its entry is kept."""
        wanted = AuditFilter(
            tenant=visit.tenant,
            scope_id=visit.scope.id,
            event_type=event_type,
            actor_id=actor_id,
            correlation_id=correlation_id,
            message_id=message_id,
            allowed=allowed,
            since=from_datetime(since) if since else None,
            until=from_datetime(until) if until else None,
        )

        def look(reader: Reader) -> list[AuditEntry]:
            return reader.audit(_narrowed(wanted, visible_queues(reader, visit)), cursor, limit + 1)

        found = await visit.house.ask(look)
        page = found[:limit]
        return many([shown(visit, entry) for entry in page], page[-1].id if len(found) > limit else None)

    @routes.get("/scopes/{scope_id}/audit/trace/{correlation_id}", openapi_extra=needs("view", "audit.trace"))
    async def trace(
        visit: Visiting, scope_id: str, correlation_id: Annotated[str, Path(max_length=512)]
    ) -> Json:
        """Everything that happened in one conversation of a scope, in order: calls, rules, housekeepers."""

        def look(reader: Reader) -> tuple[list[AuditEntry], list[Event]]:
            wanted = AuditFilter(
                tenant=visit.tenant,
                scope_id=visit.scope.id,
                correlation_id=correlation_id,
                newest_first=False,
            )
            queues = visible_queues(reader, visit)
            calls = reader.audit(_narrowed(wanted, queues), None, MOST_STEPS)
            of_it = MessageFilter(
                tenant=visit.tenant, scope=visit.scope.slug, correlation_id=correlation_id, deliveries=True
            )
            messages = reader.page(of_it, None, MOST_STEPS)
            if not messages:
                return calls, []
            since = min(stored.row.created_at for stored in messages)
            until = max(stored.row.updated_at for stored in messages)
            events = reader.events_about(visit.tenant, correlation_id, since, until, MOST_STEPS)
            seen = None if queues is None else {None, *(queue.slug for queue in queues)}
            return calls, [
                event
                for event in events
                if event.scope in (None, visit.scope.slug) and (seen is None or event.queue in seen)
            ]

        calls, events = await visit.house.ask(look)
        # A call is told after what it did, which was done before it was told.
        steps = [(event.time, 0, number, _step(event)) for number, event in enumerate(events)]
        steps += [(call.created_at, 1, number, shown(visit, call)) for number, call in enumerate(calls)]
        steps.sort(key=lambda step: step[:3])
        visit.correlation_id = correlation_id
        return many([step for *_, step in steps])
