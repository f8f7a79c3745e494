"""Schedules: what is sent to whom by itself, and when."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from postroom.api.dependencies import Dependencies
from postroom.api.error_responses import needs
from postroom.api.openapi import AnswerModel, Id, ObjectBody, Ok, Word, answers
from postroom.api.responses import OK, Json
from postroom.clock import from_datetime, iso
from postroom.errors import PostroomError
from postroom.office.schedules import Schedule, Schedules

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
    missed: str | None = None


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
    missed: str | None = None


class TimeMissing(PostroomError):
    """agentId, message, and either cron or runAt are required"""

    code = "VALIDATION_ERROR"
    http_status = 400


class NoDate(PostroomError):
    """Invalid runAt date"""

    code = "VALIDATION_ERROR"
    http_status = 400


def shown(schedule: Schedule) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": schedule.id,
        "label": schedule.label,
        "cron": schedule.cron,
        "agentId": schedule.to,
        "message": schedule.text,
        "channel": schedule.channel,
        "sender": schedule.sender,
        "enabled": schedule.enabled,
        "createdAt": schedule.created_at // 1000,
        "zone": schedule.zone,
        "missed": schedule.missed.value,
    }
    if schedule.at is not None:
        found["runAt"] = iso(schedule.at)
    return found


def moment(text: str) -> int:
    """An ISO time; one without a zone is UTC."""
    try:
        found = datetime.fromisoformat(text)
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return from_datetime(found)
    except (ValueError, OverflowError):
        raise NoDate from None


_NAMES = {"agentId": "to", "message": "text"}


def _given(body: ObjectBody) -> dict[str, Any]:
    found = body.model_dump(exclude_none=True)
    run_at = found.pop("runAt", None)
    if run_at:
        found["at"] = moment(run_at)
    if not found.get("cron") and run_at:
        found.pop("cron", None)
    return {_NAMES.get(name, name): value for name, value in found.items()}


def routes(front: Dependencies) -> APIRouter:
    api = APIRouter(tags=["schedules"])

    def book() -> Schedules:
        return front.staff.office.schedules

    @api.get("/api/schedules", responses=answers(list[AnswerModel]))
    async def list_schedules(agent: Annotated[str | None, Query(max_length=200)] = None) -> Json:
        """All schedules, or those of one agent."""
        return Json([shown(schedule) for schedule in await book().all(agent or None)])

    @api.post(
        "/api/schedules",
        responses=answers(Ok, 400, 409),
        openapi_extra=needs(NEEDED, "agentId", "message"),
    )
    async def add_schedule(wanted: NewSchedule) -> Json:
        """Send something by a cron expression, or once at a time."""
        if not wanted.cron and not wanted.runAt:
            raise TimeMissing
        given = _given(wanted)
        to, text = given.pop("to"), given.pop("text")
        return Json({"ok": True, "schedule": shown(await book().add(to, text, **given))})

    @api.put("/api/schedules/{id}", responses=answers(Ok, 400, 404, 409))
    async def change_schedule(id: Id, change: ScheduleChange) -> Json:  # noqa: A002
        """Change any of a schedule's fields."""
        return Json({"ok": True, "schedule": shown(await book().change(id, **_given(change)))})

    @api.delete("/api/schedules/{id}", responses=answers(Ok, 404, 409))
    async def remove_schedule(id: Id) -> Json:  # noqa: A002
        """Remove a schedule, named by its id or its label."""
        await book().remove(id)
        return Json(OK)

    @api.post("/api/schedules/{id}/run", responses=answers(Ok, 404))
    async def run_schedule(id: Id) -> Json:  # noqa: A002
        """Send it once more, now."""
        receipt = await book().run_now(id)
        return Json({"ok": True, "messageId": receipt.id})

    return api
