"""Keys, lists, streams, the audit, erasures, webhooks and housekeepers as the service shows them."""

import base64
from typing import Any

import msgspec

from postroom.api.queue.views import when
from postroom.kernel import jsontext, streams
from postroom.kernel.access.acl import AclEntry
from postroom.kernel.access.keys import Key
from postroom.kernel.access.permissions import PREFIX
from postroom.kernel.access.trust import Trust
from postroom.kernel.ledger import Event
from postroom.kernel.model import Message
from postroom.kernel.ports import AuditEntry, Chunk
from postroom.kernel.webhooks import Webhook
from postroom.runtime.queries import HousekeeperStatus
from postroom.services.audit import Trace
from postroom.services.erasure import ErasureJob
from postroom.services.public_ids import PublicIds
from postroom.services.roles import CustomRole
from postroom.services.streams import ScopedStream, StreamParts
from postroom.services.webhooks import DELIVERY_STATES

# Numbers that count over all tenants tell nothing to one of them.
_COUNTED = frozenset({"subscription", "record"})


def key(found: Key, ids: PublicIds) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "hint": found.hint,
        "scope_id": ids.scope(found.scope_id) if found.scope_id else None,
        "permissions": [PREFIX + each for each in found.permissions],
        "role": found.role,
        "assigned_user_id": found.user_id,
        "groups": list(found.groups),
        "actor_type": found.actor_type,
        "expires_at": when(found.expires_at),
        "revoked_at": when(found.revoked_at),
        "rotated_at": when(found.rotated_at),
        "created_at": when(found.created_at),
        "created_by": found.created_by,
    }


def acl_entry(entry: AclEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "principal_type": entry.principal_type,
        "principal_id": entry.principal_id,
        "permissions": list(entry.permissions),
        "expires_at": when(entry.expires_at),
        "created_at": when(entry.created_at),
    }


def trust(found: Trust, ids: PublicIds) -> dict[str, Any]:
    return {
        "id": found.id,
        "source_scope_id": ids.scope(found.source_id),
        "target_scope_id": ids.scope(found.target_id),
        "permissions": list(found.permissions),
        "enabled": found.enabled,
        "created_at": when(found.created_at),
    }


def role(found: CustomRole) -> dict[str, Any]:
    return {"name": found.name, "module_permissions": found.permissions}


def stream(of: ScopedStream, ids: PublicIds) -> dict[str, Any]:
    found = of.stream
    return {
        "id": found.id,
        "scope_id": ids.scope(of.scope_id),
        "state": of.state,
        "queue": found.queue,
        "content_type": found.content_type,
        "message_type": found.message_type,
        "correlation_id": found.correlation_id,
        "labels": found.labels,
        "chunks": found.chunks,
        "bytes": found.bytes,
        "total_chunks": found.total_chunks,
        "message_id": found.message_id,
        "reason": found.reason,
        "created_at": when(found.created_at),
        "updated_at": when(found.updated_at),
    }


def chunk(part: Chunk) -> dict[str, Any]:
    """A part may end in the middle of a letter; then it is shown as base64."""
    try:
        return {"sequence": part.number, "data": part.data.decode()}
    except UnicodeDecodeError:
        data = base64.b64encode(part.data).decode()
        return {"sequence": part.number, "data": data, "encoding": "base64"}


def whole_stream(found: StreamParts, ids: PublicIds) -> dict[str, Any]:
    joined = chunk(Chunk(0, b"".join(part.data for part in found.chunks)))
    lacking = streams.missing(found.of.stream, {part.number for part in found.chunks})
    del joined["sequence"]
    return {**stream(found.of, ids), **joined, "missing": lacking[: streams.MISSING_SHOWN]}


def audit_entry(entry: AuditEntry, ids: PublicIds) -> dict[str, Any]:
    return {
        "id": entry.id,
        "tenant_id": entry.tenant,
        "scope_id": ids.scope(entry.scope_id) if entry.scope_id else None,
        "queue_id": ids.queue(entry.queue_id) if entry.queue_id else None,
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


def trace(found: Trace, ids: PublicIds) -> list[dict[str, Any]]:
    """In order; a call is told after what it did, which was done before it was told."""
    steps = [(event.time, 0, number, _step(event)) for number, event in enumerate(found.events)]
    steps += [(call.created_at, 1, number, audit_entry(call, ids)) for number, call in enumerate(found.calls)]
    return [step for *_, step in sorted(steps, key=lambda step: step[:3])]


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


def erasure(job: ErasureJob, ids: PublicIds) -> dict[str, Any]:
    return {
        "id": job.id,
        "scope_id": ids.scope(job.scope_id),
        "status": job.status,
        "mode": job.mode,
        "dry_run": job.dry_run,
        "subject": msgspec.to_builtins(job.subject) if job.subject is not None else None,
        "found": job.found,
        "erased": job.erased,
        "waiting": job.waiting,
        "in_lake": job.in_lake,
        "proof": job.proof,
        "error": job.error,
        "created_at": when(job.created_at),
        "completed_at": when(job.completed_at),
    }


def webhook(hook: Webhook) -> dict[str, Any]:
    return {
        "id": hook.id,
        "url": hook.url,
        "events": list(hook.events),
        "status": hook.status,
        "max_retries": hook.max_retries,
        "problem": hook.problem or None,
        "description": hook.description,
        "created_at": when(hook.created_at),
        "updated_at": when(hook.updated_at),
    }


def delivery(message: Message) -> dict[str, Any]:
    body = message.body if isinstance(message.body, dict) else {}
    result = message.result if isinstance(message.result, dict) else {}
    return {
        "id": message.id,
        "event_id": body.get("event_id"),
        "event_type": body.get("event_type"),
        "status": next(name for name, states in DELIVERY_STATES.items() if message.state in states),
        "attempts": message.attempts,
        "status_code": result.get("status_code"),
        "took_ms": result.get("took_ms"),
        "problem": message.failure_reason if message.state != "completed" else None,
        "next_attempt_at": when(message.visible_at),
        "created_at": when(message.created_at),
        "finished_at": when(message.finished_at),
    }


def housekeeper(found: HousekeeperStatus, *, figures: bool) -> dict[str, Any]:
    shown = {
        "name": found.name,
        "work": found.work,
        "schedule": f"every {found.every_s:g} s",
        "every_s": found.every_s,
        "enabled": True,
        "last_run_at": when(found.last_run_at),
        "last_status": found.last_status,
    }
    if figures:
        shown |= {
            "last_duration_ms": found.last_duration_ms,
            "items_processed": found.items_processed,
            "total_items": found.total_items,
            "runs": found.runs,
            "last_error": found.last_error,
            "leader": found.leader,
        }
    return shown
