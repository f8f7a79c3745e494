"""Teams, and the room each has for its talk."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from postroom.api.dependencies import Dependencies
from postroom.api.error_responses import needs, too_large
from postroom.api.office import message_rows
from postroom.api.openapi import AnswerModel, Id, Limit, ObjectBody, Ok, Said, Word, answers
from postroom.api.responses import OK, Json
from postroom.kernel import commands as c
from postroom.kernel.model import Message, NewMessage
from postroom.office import queues as places
from postroom.office.agents import Staff, TeamNotFound, TeamView
from postroom.office.intake.routing import post
from postroom.office.lanes.batches import text_of

USER = "user"


class TeamFields(ObjectBody):
    name: Word
    agents: Annotated[list[Word], Field(min_length=1, max_length=500)]
    leader_agent: Word
    daily_usd: float | None = None
    replies: str | None = None


class RoomPostBody(ObjectBody):
    message: Said


def shown(view: TeamView) -> dict[str, Any]:
    return {
        **view.settings,
        "name": view.name,
        "agents": list(view.agents),
        "leader_agent": view.leader_agent,
    }


def routes(front: Dependencies) -> APIRouter:
    api = APIRouter(tags=["teams"])
    staff = Staff(front.settings, front.home, clock=front.clock)

    @api.get("/api/teams", responses=answers(dict[str, AnswerModel]))
    async def list_teams() -> Json:
        """All teams, by id."""
        found = await asyncio.to_thread(staff.teams)
        return Json({team: shown(view) for team, view in found.items()})

    @api.put(
        "/api/teams/{id}",
        responses=answers(Ok, 400, 409),
        openapi_extra=needs("name, agents, and leader_agent are required", "name", "agents", "leader_agent"),
    )
    async def put_team(id: Id, fields: TeamFields) -> Json:  # noqa: A002
        """Add a team, or change one."""
        view, _ = await asyncio.to_thread(staff.put_team, id, fields.model_dump(exclude_none=True))
        await front.staff.apply()
        return Json({"ok": True, "team": shown(view)})

    @api.delete("/api/teams/{id}", responses=answers(Ok, 404))
    async def delete_team(id: Id) -> Json:  # noqa: A002
        """Remove a team. Its agents stay."""
        await asyncio.to_thread(staff.remove_team, id)
        await front.staff.apply()
        return Json(OK)

    def known(team: str) -> str:
        if team not in front.staff.office.directory.teams:
            raise TeamNotFound(team=team)
        return team

    @api.get("/api/chatroom/{team}", responses=answers(list[AnswerModel], 404))
    async def read_room(
        team: Id, limit: Limit = 100, since: Annotated[int, Query(ge=0, le=2**53)] = 0
    ) -> Json:
        """The talk of a team, the newest first; with `since`, what came after that row, the oldest first."""
        wanted: dict[str, Any] = {"after": since} if since else {"newest_first": True}
        queues = [places.room_of(known(team))]
        # What was posted before, in an office that this one took over.
        if places.past_of(team).removeprefix(f"{places.SCOPE}/") in await front.room.scope_counts(
            places.SCOPE
        ):
            queues.append(places.past_of(team))
        rows: list[dict[str, Any]] = []
        for queue in queues:
            found = await front.room.numbered(queue=queue, limit=limit, **wanted)
            rows += [_row(number, message, team) for number, message in found]
        if len(queues) > 1:
            rows.sort(
                key=lambda row: row["id"] if since else (row["created_at"], row["id"]), reverse=not since
            )
        return Json(rows[:limit])

    @api.post(
        "/api/chatroom/{team}",
        responses=answers(Ok, 400, 404),
        openapi_extra=needs("message is required", "message"),
    )
    async def write_to_room(team: Id, said: RoomPostBody) -> Json:
        """Say something to a whole team."""
        team = known(team)
        text = said.message.strip()
        if not text:
            return Json({"error": "message is required", "code": "VALIDATION_ERROR"}, status_code=400)
        too_large(text, front.staff.settings.limits.message_bytes)
        posted = post(text, team, USER, front.staff.office.directory)
        message = NewMessage(
            body={"text": posted.text, "team": team, "post": posted.body},
            message_type="office.post",
            channel="chatroom",
            sender=USER,
            source_type="user",
            source_id=USER,
        )
        publish = c.Publish(queue=places.room_of(team), messages=[message], actor=front.room.actor)
        receipts = await front.room.run(publish)
        found = await front.room.numbered(queue=places.room_of(team), newest_first=True, limit=50)
        number = next((number for number, each in found if each.id == receipts[0].id), 0)
        return Json({"ok": True, "id": number})

    return api


def _row(number: int, message: Message, team: str) -> dict[str, Any]:
    body = message.body if isinstance(message.body, dict) else {}
    return {
        "id": number,
        "team_id": team,
        "from_agent": message.from_agent or USER,
        "message": body.get("post") or text_of(message),
        "created_at": body.get("created_at") or message_rows.ms(message.created_at),
    }
