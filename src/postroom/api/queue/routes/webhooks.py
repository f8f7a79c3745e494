"""Webhooks of a tenant: made, changed, tried, and the log of what was delivered."""

import secrets
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Response
from pydantic import Field

from postroom.api.queue import documents, views
from postroom.api.queue.access import needs
from postroom.api.queue.bodies import RequestBody, Text
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.request_context import RequestContext, Visiting
from postroom.api.queue.service import new_id
from postroom.api.responses import Json
from postroom.clock import from_datetime
from postroom.kernel import webhooks
from postroom.kernel.ports import MessageFilter, Reader
from postroom.kernel.rows import Stored
from postroom.kernel.webhooks import Webhook
from postroom.webhooks.addresses import check_url
from postroom.webhooks.relay import delivery
from postroom.webhooks.service import make_place

PLACE = "/webhooks"
STATUS: dict[str, tuple[str, ...]] = {
    "pending": ("pending", "delayed", "claimed"),
    "delivered": ("completed",),
    "failed": ("dead", "cancelled", "expired"),
}


class NewWebhook(RequestBody):
    url: Text
    events: list[str] = Field(default_factory=list, description="Empty: all of them")
    secret: Annotated[str, Field(min_length=16, max_length=200)] | None = None
    status: Literal["active", "inactive"] = "active"
    max_retries: Annotated[int, Field(ge=0, le=50)] = 5
    description: Text = ""


def shown(hook: Webhook) -> dict[str, Any]:
    return {
        "id": hook.id,
        "url": hook.url,
        "events": list(hook.events),
        "status": hook.status,
        "max_retries": hook.max_retries,
        "description": hook.description,
        "created_at": views.when(hook.created_at),
        "updated_at": views.when(hook.updated_at),
    }


async def _one(visit: RequestContext, webhook_id: str) -> Webhook:
    return webhooks.read((await documents.found(visit, webhooks.KIND, webhook_id, "webhook")).data)


async def _save(visit: RequestContext, hook: Webhook) -> None:
    note = {"id": hook.id}
    await documents.file(visit, webhooks.KIND, hook.id, msgspec.to_builtins(hook), note=note)
    visit.details = {"webhook": hook.id}


def _state(stored: Stored) -> str:
    return next(name for name, states in STATUS.items() if stored.row.state in states)


def _delivery_shown(visit: RequestContext, stored: Stored) -> dict[str, Any]:
    message = visit.house.directory.message(stored)
    result = message.result if isinstance(message.result, dict) else {}
    return {
        "id": message.id,
        "event_id": message.body.get("event_id") if isinstance(message.body, dict) else None,
        "event_type": message.body.get("event_type") if isinstance(message.body, dict) else None,
        "status": _state(stored),
        "attempts": message.attempts,
        "status_code": result.get("status_code"),
        "took_ms": result.get("took_ms"),
        "problem": message.failure_reason if stored.row.state != "completed" else None,
        "next_attempt_at": views.when(message.visible_at),
        "created_at": views.when(message.created_at),
        "finished_at": views.when(message.finished_at),
    }


def add(routes: APIRouter) -> None:
    @routes.post(PLACE, status_code=201, openapi_extra=needs("manage", "webhook.create", whole=True))
    async def create_webhook(visit: Visiting, body: NewWebhook) -> Json:
        """Be told of events over HTTPS. The secret signs every request and is shown in this answer alone."""
        check_url(body.url, inside=visit.house.inside())
        now = visit.house.clock.now()
        hook = Webhook(
            id=new_id(),
            tenant=visit.tenant,
            url=body.url,
            events=webhooks.check_events(body.events),
            secret=body.secret or secrets.token_urlsafe(32),
            status=body.status,
            max_retries=body.max_retries,
            description=body.description,
            own_mail=visit.caller.is_owner,
            created_at=now,
            updated_at=now,
        )
        await _save(visit, hook)
        return one({**shown(hook), "secret": hook.secret}, status=201)

    @routes.get(PLACE, openapi_extra=needs("manage", "webhook.list", whole=True))
    async def list_webhooks(visit: Visiting, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """The webhooks of the tenant; never their secrets."""
        found = await documents.listed(visit, webhooks.KIND)
        return many(*cut([shown(webhooks.read(each.data)) for each in found], cursor, limit))

    @routes.get(PLACE + "/{webhook_id}", openapi_extra=needs("manage", "webhook.read", whole=True))
    async def read_webhook(visit: Visiting, webhook_id: str) -> Json:
        """One webhook, without its secret."""
        return one(shown(await _one(visit, webhook_id)))

    @routes.put(PLACE + "/{webhook_id}", openapi_extra=needs("manage", "webhook.update", whole=True))
    async def update_webhook(visit: Visiting, webhook_id: str, body: NewWebhook) -> Json:
        """Put these settings in the place of the old ones; without a secret, the old one stays."""
        kept = await _one(visit, webhook_id)
        check_url(body.url, inside=visit.house.inside())
        changed = msgspec.structs.replace(
            kept,
            url=body.url,
            events=webhooks.check_events(body.events),
            secret=body.secret or kept.secret,
            status=body.status,
            max_retries=body.max_retries,
            description=body.description,
            own_mail=kept.own_mail and visit.caller.is_owner,
            updated_at=visit.house.clock.now(),
        )
        await _save(visit, changed)
        return one(shown(changed))

    @routes.delete(
        PLACE + "/{webhook_id}", status_code=204, openapi_extra=needs("manage", "webhook.delete", whole=True)
    )
    async def delete_webhook(visit: Visiting, webhook_id: str) -> Response:
        """What was not delivered yet is not delivered any more."""
        await documents.unfile(visit, webhooks.KIND, webhook_id, "webhook", note={"id": webhook_id})
        return Response(status_code=204)

    @routes.post(PLACE + "/{webhook_id}/test", openapi_extra=needs("manage", "webhook.test", whole=True))
    async def test_webhook(visit: Visiting, webhook_id: str) -> Json:
        """Deliver an event that says it is a test; how it went is in the log of deliveries."""
        hook = await _one(visit, webhook_id)
        await make_place(visit.house.room)
        event_id = f"evt_{new_id().replace('-', '')}"
        told = webhooks.envelope(
            webhooks.TEST, event_id, hook.tenant, {"webhook_id": hook.id}, visit.house.clock.now()
        )
        await visit.house.run(delivery(hook, told, None))
        return one({"event_id": event_id})

    @routes.get(
        PLACE + "/{webhook_id}/deliveries", openapi_extra=needs("manage", "webhook.deliveries", whole=True)
    )
    async def list_deliveries(
        visit: Visiting,
        webhook_id: str,
        status: Literal["pending", "delivered", "failed"] | None = None,
        since: datetime | None = None,
        limit: Limit = 50,
    ) -> Json:
        """What was sent, newest first, with how often it was tried and what came of it."""
        hook = await _one(visit, webhook_id)

        def look(reader: Reader) -> list[Stored]:
            wanted = MessageFilter(
                tenant=webhooks.TENANT,
                message_type=webhooks.MESSAGE,
                labels=(("webhook", hook.id),),
                states=STATUS[status] if status else (),
                created_after=from_datetime(since) if since else None,
                newest_first=True,
            )
            return reader.page(wanted, None, limit)

        return many([_delivery_shown(visit, stored) for stored in await visit.house.ask(look)])
