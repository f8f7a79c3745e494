"""The housekeepers ("system agents") with what they did, and one that is run by hand."""

from typing import Any

import msgspec

from postroom.kernel.access.permissions import Permission
from postroom.runtime.queries import HousekeeperStatus
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service

_NO_FIGURES: dict[str, Any] = {
    "last_duration_ms": 0.0,
    "items_processed": 0,
    "total_items": 0,
    "runs": 0,
    "last_error": None,
    "leader": None,
}


class Housekeepers(Service):
    LIST = Operation("agents.list", Permission.VIEW)
    RUN = Operation("agents.run", Permission.MANAGE, owner=True)

    async def list_all(self, caller: Caller) -> list[HousekeeperStatus]:
        """How often each runs, and how its last run went. Figures of the whole store are for its
        owner: what was done for others would tell how much they do."""
        async with self._call(caller, self.LIST) as call:
            await call.allow()
            found = await self._context.room.housekeepers()
            return (
                found if caller.is_owner else [msgspec.structs.replace(each, **_NO_FIGURES) for each in found]
            )

    async def run(self, caller: Caller, name: str) -> int:
        """Run one now; how many items it handled."""
        async with self._call(caller, self.RUN) as call:
            await call.allow()
            return await self._context.room.housekeep(name)
