"""Schedules: what is sent to whom by itself, and when."""

from datetime import UTC, datetime
from typing import Any

from postroom.clock import from_datetime
from postroom.errors import Invalid
from postroom.office.schedules import Schedule, Schedules
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeService, require_owner, require_viewer


class NoDate(Invalid):
    """Invalid runAt date"""

    http_status = 400


def moment(text: str) -> int:
    """An ISO time; one without a zone is UTC."""
    try:
        found = datetime.fromisoformat(text)
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return from_datetime(found)
    except (ValueError, OverflowError):
        raise NoDate from None


class ScheduleService(OfficeService):
    """A schedule is named by its id or its label."""

    async def _schedules(self) -> Schedules:
        return (await self._context.control()).office.schedules

    async def list_all(self, caller: Caller, to: str | None = None) -> list[Schedule]:
        require_viewer(caller)
        return await (await self._schedules()).all(to)

    async def get(self, caller: Caller, name: str) -> Schedule:
        require_viewer(caller)
        return await (await self._schedules()).show(name)

    async def preview(self, caller: Caller, name: str, count: int = 5) -> list[int]:
        """Its next times from now on."""
        require_viewer(caller)
        return await (await self._schedules()).preview(name, count)

    async def add(self, caller: Caller, to: str, text: str, **fields: Any) -> Schedule:
        """By a `cron` expression, or once `at` a moment."""
        require_owner(caller)
        return await (await self._schedules()).add(to, text, **fields)

    async def change(self, caller: Caller, name: str, **fields: Any) -> Schedule:
        require_owner(caller)
        return await (await self._schedules()).change(name, **fields)

    async def remove(self, caller: Caller, name: str) -> Schedule:
        require_owner(caller)
        return await (await self._schedules()).remove(name)

    async def run(self, caller: Caller, name: str) -> str:
        """Send it once more, now; the message's id."""
        require_owner(caller)
        return (await (await self._schedules()).run_now(name)).id
