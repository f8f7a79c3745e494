"""Subscribers of broadcast queues, each with its own progress, and their memory of what they have seen."""

from fastapi import APIRouter, Response

from postroom.api.queue import views
from postroom.api.queue.access import AccessCheck, find_queue, needs
from postroom.api.queue.bodies import NewSubscription, SeenKey
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.request_context import RequestContext, Visiting
from postroom.api.responses import Json
from postroom.errors import InvalidField, QueueNotFound
from postroom.kernel import commands as c
from postroom.kernel.access.acl import AccessVerdict
from postroom.kernel.model import Counts, Subscription
from postroom.kernel.ports import Reader
from postroom.services.errors import NoSuchThing

PLACE = "/scopes/{scope_id}/subscriptions"


async def _all(visit: RequestContext) -> list[tuple[Subscription, Counts]]:
    def look(reader: Reader) -> list[tuple[Subscription, Counts]]:
        guard = AccessCheck(reader, visit, visit.house.clock.now())
        return [
            (each, reader.counts(queue.id, each.id))
            for queue in reader.queues(visit.tenant, visit.scope.slug)
            if guard.verdict(visit.scope, queue.id, visit.permission) is AccessVerdict.ALLOWED
            for each in reader.subscriptions(queue.id)
        ]

    return await visit.house.ask(look)


async def _one(visit: RequestContext, subscription_id: str) -> tuple[Subscription, Counts]:
    for found in await _all(visit):
        if visit.opaque.subscription(found[0].id) == subscription_id:
            return found
    raise NoSuchThing(what="subscription", id=subscription_id)


def add(routes: APIRouter) -> None:
    @routes.post(PLACE, status_code=201, openapi_extra=needs("consume", "subscription.create"))
    async def subscribe(visit: Visiting, scope_id: str, body: NewSubscription) -> Json:
        """Subscribe to a broadcast queue, from now on or from the earliest message that is kept."""

        def look(reader: Reader) -> str:
            queue = find_queue(reader, visit, visit.scope, body.queue_id)
            guard = AccessCheck(reader, visit, visit.house.clock.now())
            if guard.verdict(visit.scope, queue.id, visit.permission) is not AccessVerdict.ALLOWED:
                raise QueueNotFound(queue=body.queue_id)
            visit.enter(visit.scope, queue)
            return queue.path

        path = await visit.house.ask(look)
        made = await visit.house.run(
            c.Subscribe(queue=path, name=body.name, earliest=body.earliest, exist_ok=False, **visit.who)
        )
        counts = await visit.house.ask(lambda reader: reader.counts(made.queue_id, made.id))
        return one(views.subscription(made, counts, visit.opaque), status=201)

    @routes.get(PLACE, openapi_extra=needs("view", "subscription.list"))
    async def list_subscriptions(
        visit: Visiting, scope_id: str, limit: Limit = 100, cursor: Cursor = None
    ) -> Json:
        """Subscribers of the queues this key can see, each with its progress."""
        shown = [views.subscription(found, counts, visit.opaque) for found, counts in await _all(visit)]
        return many(*cut(shown, cursor, limit))

    @routes.get(PLACE + "/{subscription_id}", openapi_extra=needs("view", "subscription.read"))
    async def read_subscription(visit: Visiting, scope_id: str, subscription_id: str) -> Json:
        """One subscription with its progress."""
        return one(views.subscription(*await _one(visit, subscription_id), visit.opaque))

    @routes.delete(
        PLACE + "/{subscription_id}", status_code=204, openapi_extra=needs("consume", "subscription.delete")
    )
    async def unsubscribe(visit: Visiting, scope_id: str, subscription_id: str) -> Response:
        """What the subscriber had not finished is cancelled; what it holds must be settled first."""
        found, _ = await _one(visit, subscription_id)
        await visit.house.run(c.Unsubscribe(queue=found.queue, name=found.name, **visit.who))
        return Response(status_code=204)

    @routes.post(PLACE + "/{subscription_id}/dedup", openapi_extra=needs("consume", "subscription.dedup"))
    async def check_seen(visit: Visiting, scope_id: str, subscription_id: str, body: SeenKey) -> Json:
        """Whether this subscriber has seen a message id (or any text) before; remembered for a day."""
        key = body.message_id or body.key
        if not key:
            raise InvalidField("message_id", "is needed, or a key")
        found, _ = await _one(visit, subscription_id)
        seen = await visit.house.run(c.CheckSeen(queue=found.queue, name=found.name, key=key, **visit.who))
        return one({"duplicate": seen})
