"""All routes together, as one router that is mounted under each of the service's paths."""

from fastapi import APIRouter

from postroom.api.queue.access import gated
from postroom.api.queue.envelopes import Failure
from postroom.api.queue.gate import route_class
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
from postroom.api.queue.service import QueueService

PREFIXES = ("/v1", "/v1/modules/scaiqueue")
PARTS = (
    scopes,
    queues,
    messages,
    claims,
    schemas,
    subscriptions,
    reviews,
    streams,
    keys,
    access,
    audit,
    erasure,
    webhooks,
    agents,
)
SERVED = (rules,)


def router(house: QueueService, prefix: str = PREFIXES[0]) -> APIRouter:
    """`prefix` is where it is mounted; the second one is only for clients that know no other."""
    whole = APIRouter()
    for parts, gate in ((PARTS, gated(house)), (SERVED, route_class(house.services, house.is_owner))):
        routes = APIRouter(
            prefix=prefix,
            route_class=gate,
            tags=["work queue"],
            include_in_schema=prefix == PREFIXES[0],
            responses={"4XX": {"model": Failure}},
        )
        for part in parts:
            part.add(routes)
        whole.include_router(routes)
    return whole
