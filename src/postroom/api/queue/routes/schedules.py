"""Schedules of queues: what is published by itself, and when."""

from fastapi import APIRouter, Response

from postroom.api.queue import views
from postroom.api.queue.bodies import ScheduleBody
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.gate import Calling, needs
from postroom.api.responses import Json
from postroom.services.queue_schedules import QueueSchedules

PATH = "/scopes/{scope_id}/schedules"


def add(routes: APIRouter) -> None:
    @routes.get(PATH, openapi_extra=needs(QueueSchedules.LIST))
    async def list_schedules(call: Calling, scope_id: str, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """Schedules of the queues this key can see, with when each comes next."""
        found = await call.services.queue_schedules.list_all(call.caller, scope_id)
        return many(*cut([views.schedule(each) for each in found], cursor, limit))

    @routes.put(PATH + "/{name}", openapi_extra=needs(QueueSchedules.PUT))
    async def put_schedule(call: Calling, scope_id: str, name: str, body: ScheduleBody) -> Json:
        """Publish to a queue by cron, at an interval or once; a schedule of this name is changed whole."""
        made = await call.services.queue_schedules.put(
            call.caller, scope_id, name, body.queue_id, body.fields()
        )
        return one(views.schedule(made))

    @routes.get(PATH + "/{name}", openapi_extra=needs(QueueSchedules.READ))
    async def read_schedule(call: Calling, scope_id: str, name: str) -> Json:
        """One schedule, with when it comes next and what came of the last time."""
        return one(views.schedule(await call.services.queue_schedules.read(call.caller, scope_id, name)))

    @routes.delete(PATH + "/{name}", status_code=204, openapi_extra=needs(QueueSchedules.DELETE))
    async def delete_schedule(call: Calling, scope_id: str, name: str) -> Response:
        """What it has published stays."""
        await call.services.queue_schedules.delete(call.caller, scope_id, name)
        return Response(status_code=204)

    @routes.post(PATH + "/{name}/run", status_code=201, openapi_extra=needs(QueueSchedules.RUN))
    async def run_schedule(call: Calling, scope_id: str, name: str) -> Json:
        """Publish what it would, now, besides its times."""
        receipt = await call.services.queue_schedules.run(call.caller, scope_id, name)
        return one({"id": receipt.id, "state": receipt.state}, status=201)
