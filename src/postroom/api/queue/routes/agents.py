"""The housekeepers ("system agents") with what they did."""

from fastapi import APIRouter

from postroom.api.queue import upkeep_views as views
from postroom.api.queue.envelopes import many
from postroom.api.queue.gate import Calling, needs
from postroom.api.responses import Json
from postroom.services.housekeepers import Housekeepers


def add(routes: APIRouter) -> None:
    @routes.get("/system-agents", openapi_extra=needs(Housekeepers.LIST))
    async def list_agents(call: Calling) -> Json:
        """The housekeepers, how often each runs, how its last run went. Figures are for the owner."""
        found = await call.services.housekeepers.list_all(call.caller)
        return many([views.housekeeper(each, figures=call.caller.is_owner) for each in found])
