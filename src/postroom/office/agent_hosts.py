"""On which host of an office each agent has its workspace, and so works.

A host is a home folder with a name of its own. An agent of which no host has a workspace belongs to the one
that first takes a turn of it.
"""

from postroom.errors import DocumentChanged
from postroom.kernel import commands as c
from postroom.kernel.model import Document
from postroom.office.documents import everything
from postroom.office.ports import RoomPort

KIND = "agent_host"


class AgentHosts:
    """`host` is this one; empty where every process sees the same workspaces."""

    def __init__(self, room: RoomPort, host: str = "") -> None:
        self._room = room
        self._host = host

    async def find(self, agent: str) -> str | None:
        return _host_of(await self._room.document(KIND, agent))

    async def list_all(self) -> dict[str, str]:
        """By agent."""
        found = {each.key: _host_of(each) async for each in everything(self._room, KIND)}
        return {agent: host for agent, host in found.items() if host is not None}

    async def is_here(self, agent: str) -> bool:
        """Whether it works on this host, or may."""
        return not self._host or await self.find(agent) in (None, self._host)

    async def take(self, agent: str) -> bool:
        """Whether it works on this host: if nowhere yet, from now on here."""
        if not self._host:
            return True
        found = await self._room.document(KIND, agent)
        if found is None:
            try:
                await self._room.run(self._put(agent, self._host, expect=0))
            except DocumentChanged:
                return await self.is_here(agent)
            return True
        return _host_of(found) == self._host

    async def move(self, agent: str, host: str) -> None:
        """Wherever it was before. A turn in hand there ends first."""
        await self._room.run(self._put(agent, host))

    async def forget(self, agent: str) -> None:
        if await self._room.document(KIND, agent) is not None:
            await self._room.run(c.DropDocument(kind=KIND, key=agent, actor=self._room.actor))

    async def forget_all(self) -> None:
        """Since they are the same everywhere now."""
        for agent in await self.list_all():
            await self.forget(agent)

    def _put(self, agent: str, host: str, expect: int | None = None) -> c.Command:
        return c.PutDocument(
            kind=KIND,
            key=agent,
            data={"host": host},
            expect=expect,
            history=False,
            actor=self._room.actor,
        )


def _host_of(document: Document | None) -> str | None:
    return None if document is None else document.data.get("host")
