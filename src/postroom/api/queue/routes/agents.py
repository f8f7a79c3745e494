"""The housekeepers ("system agents") with what they did."""

from fastapi import APIRouter

from postroom.api.queue.access import needs
from postroom.api.queue.envelopes import many
from postroom.api.queue.request_context import Visiting
from postroom.api.queue.views import when
from postroom.api.responses import Json


def add(routes: APIRouter) -> None:
    @routes.get("/system-agents", openapi_extra=needs("view", "agents.list"))
    async def list_agents(visit: Visiting) -> Json:
        """Who keeps house, how often, how the last run went. Figures of the whole house are for its owner."""
        found = await visit.house.room.housekeepers()
        shown = []
        for agent in found:
            entry = {
                "name": agent.name,
                "work": agent.work,
                "schedule": f"every {agent.every_s:g} s",
                "every_s": agent.every_s,
                "enabled": True,
                "last_run_at": when(agent.last_run_at),
                "last_status": agent.last_status,
            }
            if visit.caller.is_owner:
                # What was done for others would tell how much they do.
                entry |= {
                    "last_duration_ms": agent.last_duration_ms,
                    "items_processed": agent.items_processed,
                    "total_items": agent.total_items,
                    "runs": agent.runs,
                    "last_error": agent.last_error,
                    "leader": agent.leader,
                }
            shown.append(entry)
        return many(shown)
