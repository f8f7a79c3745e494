"""All routes together, as one router that is mounted under each of the service's paths."""

from fastapi import APIRouter
from starlette.routing import Match
from starlette.types import Scope

from postroom.api.queue.envelopes import Failure
from postroom.api.queue.gate import IsOwner, nobody, route_class
from postroom.api.queue.routes import (
    access,
    agents,
    audit,
    claims,
    erasure,
    keys,
    messages,
    queues,
    reviews,
    rules,
    schedules,
    schemas,
    scopes,
    streams,
    subscriptions,
    webhooks,
)
from postroom.services.container import Services

PREFIXES = ("/v1", "/v1/modules/scaiqueue")
# Routes are tried one after another: those that are asked most stand first.
PARTS = (
    messages,
    claims,
    scopes,
    queues,
    schemas,
    subscriptions,
    schedules,
    rules,
    reviews,
    streams,
    keys,
    access,
    audit,
    erasure,
    webhooks,
    agents,
)


class PrefixedRouter(APIRouter):
    """Says no to a path that begins otherwise without asking each of its routes."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if not scope["path"].startswith(self.prefix):
            return Match.NONE, {}
        return super().matches(scope)


def router(services: Services, prefix: str = PREFIXES[0], is_owner: IsOwner = nobody) -> APIRouter:
    """`prefix` is where it is mounted; the second one is only for clients that know no other.

    `is_owner` tells the owner's token where the API's own authentication does not stand in front.
    """
    routes = PrefixedRouter(
        prefix=prefix,
        route_class=route_class(services, is_owner),
        tags=["work queue"],
        include_in_schema=prefix == PREFIXES[0],
        responses={"4XX": {"model": Failure}},
    )
    for part in PARTS:
        part.add(routes)
    return routes
