"""All routes together, as one router that is mounted under each of the service's paths."""

from fastapi import APIRouter

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
    schemas,
    scopes,
    streams,
    subscriptions,
    webhooks,
)
from postroom.services.container import Services

PREFIXES = ("/v1", "/v1/modules/scaiqueue")
PARTS = (
    scopes,
    queues,
    messages,
    claims,
    schemas,
    subscriptions,
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


def router(services: Services, prefix: str = PREFIXES[0], is_owner: IsOwner = nobody) -> APIRouter:
    """`prefix` is where it is mounted; the second one is only for clients that know no other.

    `is_owner` tells the owner's token where the API's own authentication does not stand in front.
    """
    routes = APIRouter(
        prefix=prefix,
        route_class=route_class(services, is_owner),
        tags=["work queue"],
        include_in_schema=prefix == PREFIXES[0],
        responses={"4XX": {"model": Failure}},
    )
    for part in PARTS:
        part.add(routes)
    return routes
