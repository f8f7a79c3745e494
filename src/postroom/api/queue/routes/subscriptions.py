"""Subscribers of broadcast queues, each with its own progress, and their memory of what they have seen."""

from fastapi import APIRouter, Response

from postroom.api.queue import views
from postroom.api.queue.bodies import NewSubscription, SeenKey
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.gate import Calling, needs
from postroom.api.responses import Json
from postroom.services.subscriptions import Subscriptions

PATH = "/scopes/{scope_id}/subscriptions"


def add(routes: APIRouter) -> None:
    @routes.post(PATH, status_code=201, openapi_extra=needs(Subscriptions.CREATE))
    async def subscribe(call: Calling, scope_id: str, body: NewSubscription) -> Json:
        """Subscribe to a broadcast queue, from now on or from the earliest message that is kept."""
        made = await call.services.subscriptions.subscribe(
            call.caller, scope_id, body.queue_id, body.name, earliest=body.earliest
        )
        return one(views.subscription(made, call.ids), status=201)

    @routes.get(PATH, openapi_extra=needs(Subscriptions.LIST))
    async def list_subscriptions(
        call: Calling, scope_id: str, limit: Limit = 100, cursor: Cursor = None
    ) -> Json:
        """Subscribers of the queues this key can see, each with its progress."""
        found = await call.services.subscriptions.list_all(call.caller, scope_id)
        return many(*cut([views.subscription(each, call.ids) for each in found], cursor, limit))

    @routes.get(PATH + "/{subscription_id}", openapi_extra=needs(Subscriptions.READ))
    async def read_subscription(call: Calling, scope_id: str, subscription_id: str) -> Json:
        """One subscription with its progress."""
        found = await call.services.subscriptions.read(call.caller, scope_id, subscription_id)
        return one(views.subscription(found, call.ids))

    @routes.delete(PATH + "/{subscription_id}", status_code=204, openapi_extra=needs(Subscriptions.DELETE))
    async def unsubscribe(call: Calling, scope_id: str, subscription_id: str) -> Response:
        """What the subscriber had not finished is cancelled; what it holds must be settled first."""
        await call.services.subscriptions.unsubscribe(call.caller, scope_id, subscription_id)
        return Response(status_code=204)

    @routes.post(PATH + "/{subscription_id}/dedup", openapi_extra=needs(Subscriptions.DEDUP))
    async def check_seen(call: Calling, scope_id: str, subscription_id: str, body: SeenKey) -> Json:
        """Whether this subscriber has seen a message id (or any text) before; remembered for a day."""
        key = body.message_id or body.key
        seen = await call.services.subscriptions.check_seen(call.caller, scope_id, subscription_id, key)
        return one({"duplicate": seen})
