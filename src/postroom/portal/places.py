"""Where the command palette leads besides the pages: agents, teams, queues."""

from fastapi import FastAPI
from starlette.requests import Request

from postroom.api.dependencies import Dependencies
from postroom.api.responses import Json

MOST_QUEUES = 300


def register(app: FastAPI, deps: Dependencies) -> None:
    @app.get("/portal/places", include_in_schema=False)
    async def list_places(request: Request) -> Json:
        caller, services = request.state.caller, deps.services
        found: list[dict[str, str]] = []
        for agent in (await services.agents.list_all(caller)).values():
            found.append(
                {"text": f"Chat with @{agent.id}", "hint": agent.name, "to": f"/chat?with={agent.id}"}
            )
            found.append({"text": f"Agent {agent.name}", "hint": f"@{agent.id}", "to": f"/agents/{agent.id}"})
        for team in (await services.teams.list_all(caller)).values():
            found.append({"text": f"Room #{team.id}", "hint": team.name, "to": f"/chat?room={team.id}"})
        for each in (await services.queues.search(caller, limit=MOST_QUEUES)).items:
            found.append(
                {"text": f"Queue {each.queue.path}", "hint": "queue", "to": f"/queues/{each.queue.path}"}
            )
        found.append({"text": "Every component", "hint": "style", "to": "/system/style"})
        return Json(found)
