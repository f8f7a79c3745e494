"""The audit of a scope: every gated call, allowed or refused; and everything of one conversation in order."""

from typing import Annotated

from fastapi import APIRouter, Path

from postroom.api.queue import upkeep_views as views
from postroom.api.queue.bodies import Moment, moment
from postroom.api.queue.cursors import Cursor, Limit
from postroom.api.queue.envelopes import many
from postroom.api.queue.gate import Calling, needs
from postroom.api.responses import Json
from postroom.services.audit import Audit

PATH = "/scopes/{scope_id}/audit"


def add(routes: APIRouter) -> None:
    @routes.get(PATH, openapi_extra=needs(Audit.LIST))
    async def read_audit(
        call: Calling,
        scope_id: str,
        event_type: str | None = None,
        actor_id: str | None = None,
        correlation_id: str | None = None,
        message_id: str | None = None,
        allowed: bool | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Json:
        """Newest first. The calls of a moment ago are there: an answer is sent after its entry is kept."""
        found = await call.services.audit.list_page(
            call.caller,
            scope_id,
            event_type=event_type,
            actor_id=actor_id,
            correlation_id=correlation_id,
            message_id=message_id,
            allowed=allowed,
            since=moment(since),
            until=moment(until),
            limit=limit,
            cursor=cursor,
        )
        shown = [views.audit_entry(entry, call.ids) for entry in found.entries]
        return many(shown, shown[-1]["id"] if found.more else None)

    @routes.get(PATH + "/trace/{correlation_id}", openapi_extra=needs(Audit.TRACE))
    async def trace(
        call: Calling, scope_id: str, correlation_id: Annotated[str, Path(max_length=512)]
    ) -> Json:
        """Everything that happened in one conversation of a scope, in order: calls, rules, housekeepers."""
        return many(
            views.trace(await call.services.audit.trace(call.caller, scope_id, correlation_id), call.ids)
        )
