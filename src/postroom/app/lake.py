"""The lake of this home: what erasure asks of it, and how far it has come, before which nothing is pruned.

The pipeline's packages are loaded only when there is a lake.
"""

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from postroom.clock import Clock
from postroom.errors import PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.erasure.subject import Subject
from postroom.pipeline.errors import LakeMissing
from postroom.pipeline.lake.opening import open_lake
from postroom.runtime import Room

if TYPE_CHECKING:
    from postroom.pipeline.jobs.erase import LakeEraser

log = logging.getLogger("postroom.lake")

POSITION = "pipeline"
LOOK_S = 300.0


class StoreLake:
    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self._clock = clock

    @property
    def exists(self) -> bool:
        return self.folder.is_dir()

    def _eraser(self) -> "LakeEraser":
        lake = open_lake(str(self.folder))
        from postroom.pipeline.jobs.erase import LakeEraser

        return LakeEraser(lake, self._clock)

    async def search(self, tenant: str, scope: str, subject: Subject, queues: list[str] | None) -> list[str]:
        try:
            return await self._eraser().search(tenant, scope, subject, queues) if self.exists else []
        except LakeMissing:
            return []  # a folder in which no run has ended yet

    async def preview(self, tenant: str, message_ids: list[str]) -> int:
        return await self._eraser().preview(tenant, message_ids) if self.exists else 0

    async def erase(self, tenant: str, message_ids: list[str]) -> int:
        return await self._eraser().erase(tenant, message_ids) if self.exists else 0

    def committed(self) -> int:
        """Up to which event everything is safe in the lake."""
        lake = open_lake(str(self.folder))
        from postroom.pipeline.jobs.run import committed

        return committed(lake)

    async def look(self, room: Room) -> None:
        """Nothing that the lake does not have yet may be pruned."""
        if self.exists:
            seq = await asyncio.to_thread(self.committed)
            if seq > (await room.head()).seq:
                # A lake that is ahead is that of another ledger, or the store was restored: nothing may go.
                seq = 0
            await room.run(c.SetPosition(name=POSITION, seq=seq, hold=True, actor=room.actor))

    async def hold(self, room: Room) -> None:
        """Look from time to time."""
        while True:
            try:
                await self.look(room)
            except StoreClosed:
                return
            except PostroomError as error:
                log.warning("how far the lake has come is not known: %s", error)
            except Exception:
                log.exception("how far the lake has come is not known")
            await asyncio.sleep(LOOK_S)
