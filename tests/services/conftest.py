"""The services on a real SQLite store, with a clock that stands still."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom import Room
from postroom.clock import ManualClock
from postroom.kernel import commands as c
from postroom.kernel.access import keys
from postroom.kernel.access.permissions import Permission
from postroom.kernel.ports import AuditEntry, AuditFilter
from postroom.services import callers
from postroom.services.callers import Caller
from postroom.services.container import Services


@dataclass
class ServedRoom:
    """What a test works with: the room, its services, and callers of several kinds."""

    room: Room
    services: Services
    clock: ManualClock

    @property
    def owner(self) -> Caller:
        return callers.owner(actor="tester")

    async def key(self, *permissions: str, tenant: str = "default", **more: Any) -> Caller:
        """The holder of a new key, known by its secret as over HTTP."""
        made, secret = keys.new_key(
            key_id=f"key-{self.clock.now()}-{len(permissions)}-{len(more)}",
            tenant=tenant,
            name="test",
            now=self.clock.now(),
            permissions=tuple(Permission(each) for each in permissions),
            **more,
        )
        self.clock.advance(1)
        await self.room.run(
            c.Unit(commands=(keys.kept(made, "tester"), keys.opens(made.digest, made, "tester")))
        )
        return await self.services.authentication.require_holder(secret)

    async def audit(self, **wanted: Any) -> list[AuditEntry]:
        """Oldest first."""
        chosen = AuditFilter(tenant="default", newest_first=False, **wanted)
        return await self.room.look(lambda reader: reader.audit(chosen, None, 1000))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def served(tmp_path: Path, clock: ManualClock) -> AsyncIterator[ServedRoom]:
    url = f"sqlite:///{tmp_path / 'room.db'}"
    async with postroom.open(
        url, durability="relaxed", clock=clock, housekeeping=False, actor="tester"
    ) as room:
        await room.create_scope("work")
        for queue in ("work/jobs", "work/open"):
            await room.create_queue(queue)
        yield ServedRoom(room, Services(room), clock)
