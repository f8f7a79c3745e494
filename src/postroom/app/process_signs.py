"""Signs of life: the processes of an office on a database server, on all its hosts, know of each other."""

import asyncio
import logging
import uuid

import msgspec

from postroom.app.roles import Running
from postroom.clock import Clock
from postroom.errors import PostroomError
from postroom.kernel.service_commands import ListProcesses
from postroom.kernel.transitions.processes import KnownProcess
from postroom.runtime import Room, SyncRoom
from postroom.services.office_context import ProcessFacts

log = logging.getLogger("postroom.app")

SIGN_S = 10.0


class ProcessSigns:
    """Of this process, told until it is cancelled; then that it has ended."""

    def __init__(self, room: Room, host: str, process: Running) -> None:
        self._room = room
        self._name = f"{host}/{uuid.uuid4().hex}"
        self._data = msgspec.to_builtins(
            ProcessFacts(
                pid=process.pid,
                roles=tuple(role.value for role in process.roles),
                version=process.version,
                started_at=process.started_at,
                host=host,
                url=process.url,
            )
        )

    async def tell(self) -> None:
        await self._room.run(ListProcesses(process=self._name, data=self._data))

    async def run(self) -> None:
        """Whoever is not heard of for a while counts as gone, and nothing else comes of it."""
        try:
            while True:
                await asyncio.sleep(SIGN_S)
                try:
                    await self.tell()
                except PostroomError as error:
                    log.warning("the other processes do not hear of this one at the moment: %s", error)
        finally:
            try:
                await self._room.run(ListProcesses(process=self._name, ended=True))
            except PostroomError as error:
                log.warning("the other processes were not told that this one has ended: %s", error)


def list_processes(room: SyncRoom, clock: Clock) -> list[ProcessFacts]:
    """Of all hosts, by host and age."""
    now = clock.now()
    known: list[KnownProcess] = room.run(ListProcesses())
    found = [
        msgspec.structs.replace(
            msgspec.convert(each.data, ProcessFacts), seen_at=now - each.age, silent=each.is_silent
        )
        for each in known
    ]
    return sorted(found, key=lambda each: (each.host, each.started_at, each.pid))
