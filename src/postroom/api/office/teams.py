"""Teams, and the room each has for its talk."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.error_responses import needs
from postroom.api.openapi import AnswerModel, Id, Limit, ObjectBody, Ok, Said, Word, answers, says
from postroom.api.responses import OK, Json
from postroom.services.office_documents import post_document, team_document


class TeamFields(ObjectBody):
    name: Word
    agents: Annotated[list[Word], Field(min_length=1, max_length=500)]
    leader_agent: Word
    daily_usd: Annotated[float, says(minimum=0, maximum=1_000_000_000)] | None = None
    replies: Annotated[str, says(enum=["each", "combined"])] | None = None


class RoomPostBody(ObjectBody):
    message: Said


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["teams"])
    teams, rooms = deps.services.teams, deps.services.rooms

    @api.get("/api/teams", responses=answers(dict[str, AnswerModel]))
    async def list_teams(caller: Asked) -> Json:
        """All teams, by id."""
        return Json({team: team_document(view) for team, view in (await teams.list_all(caller)).items()})

    @api.put(
        "/api/teams/{id}",
        responses=answers(Ok, 400, 409),
        openapi_extra=needs("name, agents, and leader_agent are required", "name", "agents", "leader_agent"),
    )
    async def put_team(caller: Asked, id: Id, fields: TeamFields) -> Json:  # noqa: A002
        """Add a team, or change one."""
        view = await teams.put(caller, id, fields.model_dump(exclude_none=True))
        return Json({"ok": True, "team": team_document(view)})

    @api.delete("/api/teams/{id}", responses=answers(Ok, 404))
    async def delete_team(caller: Asked, id: Id) -> Json:  # noqa: A002
        """Remove a team. Its agents stay."""
        await teams.remove(caller, id)
        return Json(OK)

    @api.get("/api/chatroom/{team}", responses=answers(list[AnswerModel], 404))
    async def read_room(
        caller: Asked, team: Id, limit: Limit = 100, since: Annotated[int, Query(ge=0, le=2**53)] = 0
    ) -> Json:
        """The talk of a team, the newest first; with `since`, what came after that row, the oldest first."""
        found = await rooms.read(caller, team, limit=limit, since=since)
        return Json([post_document(post) for post in found])

    @api.post(
        "/api/chatroom/{team}",
        responses=answers(Ok, 400, 404),
        openapi_extra=needs("message is required", "message"),
    )
    async def write_to_room(caller: Asked, team: Id, said: RoomPostBody) -> Json:
        """Say something to a whole team."""
        return Json({"ok": True, "id": await rooms.write(caller, team, said.message)})

    return api
