"""Schedules of plain queues. Who may not see a queue learns nothing of its schedules."""

from typing import Any

from postroom.kernel import commands as c
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import Receipt
from postroom.kernel.ports import MANY
from postroom.kernel.schedules.errors import ScheduleNotFound
from postroom.kernel.schedules.model import KIND, PROGRESS, QueueSchedule, to_schedule
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service


class QueueSchedules(Service):
    PUT = Operation("schedule.put", Permission.MANAGE)
    LIST = Operation("schedule.list", Permission.VIEW)
    READ = Operation("schedule.read", Permission.VIEW)
    DELETE = Operation("schedule.delete", Permission.MANAGE, 204)
    RUN = Operation("schedule.run", Permission.PUBLISH, 201)

    async def put(
        self, caller: Caller, scope: str, name: str, queue: str, fields: dict[str, Any]
    ) -> QueueSchedule:
        """Make a schedule of a queue of the scope, or change the one of this name whole."""
        async with self._call(caller, self.PUT) as call:

            def check(access: Access) -> tuple[str, str]:
                found = access.queue(scope, queue)
                hidden = {each.name for each in _all(access, found.scope)} - {
                    each.name for each in _visible(access, found.scope)
                }
                if name in hidden:
                    raise ScheduleNotFound(schedule=f"{found.scope}/{name}")
                return f"{found.scope}/{name}", found.path

            path, place = await call.look(check, quick=False)
            return await call.commit(c.PutSchedule(name=path, fields={**fields, "queue": place}, **call.who))

    async def list_all(self, caller: Caller, scope: str) -> list[QueueSchedule]:
        """Schedules of the queues this caller can see."""
        async with self._call(caller, self.LIST) as call:
            return await call.look(lambda access: _visible(access, scope), quick=False)

    async def read(self, caller: Caller, scope: str, name: str) -> QueueSchedule:
        async with self._call(caller, self.READ) as call:
            return await call.look(lambda access: _find(access, scope, name), quick=False)

    async def delete(self, caller: Caller, scope: str, name: str) -> QueueSchedule:
        """What it has published stays."""
        async with self._call(caller, self.DELETE) as call:
            found = await call.look(lambda access: _find(access, scope, name), quick=False)
            await call.commit(c.DropSchedule(name=found.path, **call.who))
            return found

    async def run(self, caller: Caller, scope: str, name: str) -> Receipt:
        """Publish what it would, now, besides its times."""
        async with self._call(caller, self.RUN) as call:
            found = await call.look(lambda access: _find(access, scope, name), quick=False)
            return await call.commit(c.RunSchedule(name=found.path, **call.who))


def _all(access: Access, scope: str) -> list[QueueSchedule]:
    reader, tenant, prefix = access.reader, access.tenant, f"{scope}/"
    progress = {each.key: each for each in reader.documents(tenant, PROGRESS, prefix, "", MANY)}
    found = reader.documents(tenant, KIND, prefix, "", MANY)
    return [to_schedule(each, progress.get(each.key)) for each in found]


def _visible(access: Access, scope: str) -> list[QueueSchedule]:
    place = access.scope(scope)
    paths = {queue.path for queue in access.list_queues(place, access.wanted)}
    everywhere = access.caller.is_admin and not access.caller.scope_id
    return [
        each
        for each in _all(access, place.slug)
        if each.queue in paths or (everywhere and not each.queue.startswith(f"{place.slug}/"))
    ]


def _find(access: Access, scope: str, name: str) -> QueueSchedule:
    for each in _visible(access, scope):
        if each.name == name:
            return each
    raise ScheduleNotFound(schedule=f"{scope}/{name}")
