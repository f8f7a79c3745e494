"""Schedules: what is sent to whom by itself, and when."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.error_responses import needs
from postroom.api.openapi import AnswerModel, Id, ObjectBody, Ok, Word, answers, says
from postroom.api.responses import OK, Json
from postroom.errors import PostroomError
from postroom.office.schedules.model import Missed
from postroom.services.office_documents import schedule_document
from postroom.services.schedules import moment

NEEDED = "agentId, message, and either cron or runAt are required"


class NewSchedule(ObjectBody):
    agentId: Word  # noqa: N815
    message: Annotated[str, Field(min_length=1)]
    cron: str | None = Field(default=None, max_length=200, examples=["0 9 * * 1-5"])
    runAt: str | None = Field(default=None, max_length=60, examples=["2030-01-01T09:00:00Z"])  # noqa: N815
    label: str | None = None
    channel: str | None = None
    sender: str | None = None
    enabled: bool | None = None
    zone: str | None = Field(default=None, max_length=80)
    missed: Annotated[str, says(enum=[*Missed])] | None = None


class ScheduleChange(ObjectBody):
    agentId: str | None = None  # noqa: N815
    message: str | None = None
    cron: str | None = Field(default=None, max_length=200)
    runAt: str | None = Field(default=None, max_length=60)  # noqa: N815
    label: str | None = None
    channel: str | None = None
    sender: str | None = None
    enabled: bool | None = None
    zone: str | None = Field(default=None, max_length=80)
    missed: Annotated[str, says(enum=[*Missed])] | None = None


class TimeMissing(PostroomError):
    """agentId, message, and either cron or runAt are required"""

    code = "VALIDATION_ERROR"
    http_status = 400


_NAMES = {"agentId": "to", "message": "text"}


def _fields(body: ObjectBody) -> dict[str, Any]:
    found = body.model_dump(exclude_none=True)
    run_at = found.pop("runAt", None)
    if run_at:
        found["at"] = moment(run_at)
    if not found.get("cron") and run_at:
        found.pop("cron", None)
    return {_NAMES.get(name, name): value for name, value in found.items()}


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["schedules"])
    schedules = deps.services.schedules

    @api.get("/api/schedules", responses=answers(list[AnswerModel]))
    async def list_schedules(
        caller: Asked, agent: Annotated[str | None, Query(max_length=200)] = None
    ) -> Json:
        """All schedules, or those of one agent."""
        found = await schedules.list_all(caller, agent or None)
        return Json([schedule_document(schedule) for schedule in found])

    @api.post(
        "/api/schedules",
        responses=answers(Ok, 400, 409),
        openapi_extra=needs(NEEDED, "agentId", "message"),
    )
    async def add_schedule(caller: Asked, wanted: NewSchedule) -> Json:
        """Send something by a cron expression, or once at a time."""
        if not wanted.cron and not wanted.runAt:
            raise TimeMissing
        schedule = await schedules.add(caller, **_fields(wanted))
        return Json({"ok": True, "schedule": schedule_document(schedule)})

    @api.put("/api/schedules/{id}", responses=answers(Ok, 400, 404, 409))
    async def change_schedule(caller: Asked, id: Id, change: ScheduleChange) -> Json:  # noqa: A002
        """Change any of a schedule's fields."""
        schedule = await schedules.change(caller, id, **_fields(change))
        return Json({"ok": True, "schedule": schedule_document(schedule)})

    @api.delete("/api/schedules/{id}", responses=answers(Ok, 404, 409))
    async def remove_schedule(caller: Asked, id: Id) -> Json:  # noqa: A002
        """Remove a schedule, named by its id or its label."""
        await schedules.remove(caller, id)
        return Json(OK)

    @api.post("/api/schedules/{id}/run", responses=answers(Ok, 404))
    async def run_schedule(caller: Asked, id: Id) -> Json:  # noqa: A002
        """Send it once more, now."""
        return Json({"ok": True, "messageId": await schedules.run(caller, id)})

    return api
