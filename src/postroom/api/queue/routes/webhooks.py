"""Webhooks of a tenant: made, changed, tried, and the log of what was delivered."""

from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import Field

from postroom.api.openapi import says
from postroom.api.queue import upkeep_views as views
from postroom.api.queue.bodies import Moment, RequestBody, Text, Whole, moment
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.gate import Calling, needs
from postroom.api.responses import Json
from postroom.kernel.webhooks import EVENTS
from postroom.services.webhooks import MOST_RETRIES, WebhookDraft, Webhooks

PATH = "/webhooks"


class NewWebhook(RequestBody):
    url: Text
    events: list[Annotated[str, says(enum=["*", *EVENTS])]] = Field(
        default_factory=list, description="Empty: all of them"
    )
    secret: Annotated[str, Field(min_length=16, max_length=200)] | None = None
    status: Literal["active", "inactive"] = "active"
    max_retries: Annotated[Whole, Field(ge=0, le=MOST_RETRIES)] = 5
    description: Text = ""

    def draft(self) -> WebhookDraft:
        return WebhookDraft(**self.model_dump())


def add(routes: APIRouter) -> None:
    @routes.post(PATH, status_code=201, openapi_extra=needs(Webhooks.CREATE))
    async def create_webhook(call: Calling, body: NewWebhook) -> Json:
        """Be told of events over HTTPS. The secret signs every request and is shown in this answer alone."""
        made = await call.services.webhooks.create(call.caller, body.draft())
        return one({**views.webhook(made), "secret": made.secret}, status=201)

    @routes.get(PATH, openapi_extra=needs(Webhooks.LIST))
    async def list_webhooks(call: Calling, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """The webhooks of the tenant; never their secrets."""
        found = await call.services.webhooks.list_all(call.caller)
        return many(*cut([views.webhook(each) for each in found], cursor, limit))

    @routes.get(PATH + "/{webhook_id}", openapi_extra=needs(Webhooks.READ))
    async def read_webhook(call: Calling, webhook_id: str) -> Json:
        """One webhook, without its secret."""
        return one(views.webhook(await call.services.webhooks.read(call.caller, webhook_id)))

    @routes.put(PATH + "/{webhook_id}", openapi_extra=needs(Webhooks.UPDATE))
    async def update_webhook(call: Calling, webhook_id: str, body: NewWebhook) -> Json:
        """Put these settings in the place of the old ones; without a secret, the old one stays."""
        changed = await call.services.webhooks.update(call.caller, webhook_id, body.draft())
        return one(views.webhook(changed))

    @routes.delete(PATH + "/{webhook_id}", status_code=204, openapi_extra=needs(Webhooks.DELETE))
    async def delete_webhook(call: Calling, webhook_id: str) -> Response:
        """What was not delivered yet is not delivered any more."""
        await call.services.webhooks.delete(call.caller, webhook_id)
        return Response(status_code=204)

    @routes.post(PATH + "/{webhook_id}/test", openapi_extra=needs(Webhooks.TEST))
    async def test_webhook(call: Calling, webhook_id: str) -> Json:
        """Deliver an event that says it is a test; how it went is in the log of deliveries."""
        return one({"event_id": await call.services.webhooks.test(call.caller, webhook_id)})

    @routes.get(PATH + "/{webhook_id}/deliveries", openapi_extra=needs(Webhooks.DELIVERIES))
    async def list_deliveries(
        call: Calling,
        webhook_id: str,
        status: Literal["pending", "delivered", "failed"] | None = None,
        since: Moment | None = None,
        limit: Limit = 50,
    ) -> Json:
        """What was sent, newest first, with how often it was tried and what came of it."""
        found = await call.services.webhooks.list_deliveries(
            call.caller, webhook_id, status=status, since=moment(since), limit=limit
        )
        return many([views.delivery(each.message) for each in found])
