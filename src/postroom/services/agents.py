"""Agents: who works here, with what, and what each is told, remembers and can do."""

import asyncio
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from postroom.errors import NotFound
from postroom.office import memory_index, skill_registry
from postroom.office.agent_hosts import AgentHosts
from postroom.office.agents import AgentExists, AgentView, Backup, Removed, Staff
from postroom.office.workspaces import HEARTBEAT, INSTRUCTIONS, Workspace
from postroom.services.agent_hosts import (
    WORKER,
    AgentElsewhere,
    AgentHost,
    HostNotFound,
    MovedAgent,
    OneHostOnly,
    list_agent_hosts,
    list_hosts,
)
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeService, require_owner, require_viewer


class WorkspaceText(msgspec.Struct, frozen=True):
    path: str
    content: str


class NoteNotFound(NotFound):
    """The memory of {agent} has no file "{path}". See: postroom memory list {agent}"""

    code = "NOTE_NOT_FOUND"


class AgentMemory(msgspec.Struct, frozen=True):
    """`index` is what the agent reads; `files` are names and paths below `folder`."""

    index: str
    files: tuple[tuple[str, str], ...]
    folder: str


class AgentHeartbeat(msgspec.Struct, frozen=True):
    """What the agent is asked from time to time. Without an interval of its own, that of all agents holds."""

    path: str
    content: str
    enabled: bool
    interval: float | None


class DirectoryEntry(msgspec.Struct, frozen=True):
    """What everybody here may know of an agent."""

    id: str
    name: str
    teams: tuple[str, ...]


class StoredAgent(msgspec.Struct, frozen=True):
    agent: AgentView
    added: bool


class AgentService(OfficeService):
    @cached_property
    def _staff(self) -> Staff:
        context = self._context
        return Staff(context.file, context.home, clock=context.clock)

    async def _hosts(self) -> AgentHosts | None:
        """None where all processes see the same workspaces."""
        host = self._context.server.host
        if not host:
            return None
        room = await self._context.room()
        settings = await asyncio.to_thread(self._context.file.load)
        return AgentHosts(room, host) if room.is_shared and not settings.workspace.shared else None

    async def _works_here(self) -> bool:
        """Whether this host takes turns."""
        server = self._context.server
        found = await asyncio.to_thread(server.processes)
        return any(each.host == server.host and WORKER in each.roles and not each.silent for each in found)

    async def list_all(self, caller: Caller) -> dict[str, AgentView]:
        require_viewer(caller)
        return await asyncio.to_thread(self._staff.agents)

    async def directory(self, caller: Caller) -> list[DirectoryEntry]:
        """Who works here, for agents too."""
        require_viewer(caller, agents=True)
        directory = (await self._context.control()).office.directory
        return [
            DirectoryEntry(agent.id, agent.name, tuple(directory.teams_of(agent.id)))
            for agent in directory.agents.values()
        ]

    async def get(self, caller: Caller, agent: str) -> AgentView:
        require_viewer(caller)
        return await asyncio.to_thread(self._staff.agent, agent)

    async def add(
        self,
        caller: Caller,
        agent: str,
        fields: Mapping[str, Any],
        *,
        system_prompt: str | None = None,
        force: bool = False,
    ) -> AgentView:
        """A new one; what it does not name it has from the first agent there is. `force` lets it work in a
        folder of the system."""
        require_owner(caller)
        known = await asyncio.to_thread(self._staff.agents)
        if agent.lower() in known:
            raise AgentExists(agent=agent.lower())
        given = {"name": agent, "model": "default"}
        if not fields.get("provider"):
            first = next(iter(known.values()))
            given |= {"provider": first.provider, "model": first.model}
        given |= {name: value for name, value in fields.items() if value}
        view, _ = await self._store(agent, given, system_prompt, force=force, may_exist=False)
        return view

    async def put(
        self, caller: Caller, agent: str, fields: Mapping[str, Any], *, system_prompt: str | None = None
    ) -> StoredAgent:
        """Adds or changes; fields that are not named stay as they are."""
        require_owner(caller)
        return StoredAgent(*await self._store(agent, fields, system_prompt, may_exist=True))

    async def _store(
        self,
        agent: str,
        fields: Mapping[str, Any],
        prompt: str | None,
        *,
        may_exist: bool,
        force: bool = False,
    ) -> tuple[AgentView, bool]:
        """The folder of a new one is made on the host where it will work. Where this one takes no turns, its
        prompt goes into the settings until then."""
        hosts = await self._hosts()
        known = await asyncio.to_thread(self._staff.agents)
        is_new = agent.lower() not in known
        if hosts is not None and is_new and not await self._works_here():
            more = {"system_prompt": prompt} if prompt is not None else {}
            view = await asyncio.to_thread(
                self._staff.add_agent, agent, {**fields, **more}, force=force, prepares=False
            )
            await self._context.apply()
            return view, True
        if may_exist:
            view, added = await asyncio.to_thread(self._staff.put_agent, agent, fields)
        else:
            view, added = await asyncio.to_thread(self._staff.add_agent, agent, fields, force=force), True
        if hosts is not None and added:
            await hosts.take(view.id)
        await self._write(view.id, INSTRUCTIONS, prompt)
        await self._context.apply()
        return view, added

    async def change(
        self, caller: Caller, agent: str, changes: Mapping[str, Any], *, force: bool = False
    ) -> AgentView:
        require_owner(caller)
        view = await asyncio.to_thread(self._staff.change_agent, agent, changes, force=force)
        await self._context.apply()
        return view

    async def remove(self, caller: Caller, agent: str) -> Removed:
        """Its folder and its entry go into a backup first."""
        require_owner(caller)
        hosts, agent = await self._hosts(), agent.lower()
        host = await hosts.find(agent) if hosts is not None else None
        is_elsewhere = hosts is not None and not await hosts.is_here(agent)
        removed = await asyncio.to_thread(self._staff.remove_agent, agent, keep_workspace=is_elsewhere)
        await self._context.apply()
        if hosts is not None:
            await hosts.forget(agent)
        if is_elsewhere:
            why = f"it is on the host {host}; remove it there"
            return msgspec.structs.replace(removed, workspace="kept", why=why)
        return removed

    async def list_hosts(self, caller: Caller) -> dict[str, AgentHost]:
        """Where agents work in an office of several hosts; those that never worked are left out."""
        require_viewer(caller)
        if await self._hosts() is None:
            return {}
        return await list_agent_hosts(await self._context.room())

    async def move(self, caller: Caller, agent: str, host: str | None = None) -> MovedAgent:
        """It works on another host from now on, or on this one. Its folder is not moved: it finds what is
        there, or begins anew. A turn in hand ends first."""
        require_owner(caller)
        view = await asyncio.to_thread(self._staff.agent, agent)
        room = await self._context.room()
        hosts = await self._hosts()
        if hosts is None:
            reason = "all processes see one folder of workspaces" if room.is_shared else "its store is a file"
            raise OneHostOnly(reason=reason)
        here = self._context.server.host
        known = await list_hosts(room)
        if (host or here) not in known:
            raise HostNotFound(host=host or here, known=", ".join(known))
        before = await hosts.find(view.id)
        await hosts.move(view.id, host or here)
        if host not in (None, here):
            return MovedAgent(agent=view.id, host=host or "", before=before)
        workspace = await asyncio.to_thread(self._staff.workspace, view.id)
        return MovedAgent(
            agent=view.id,
            host=here,
            before=before,
            folder=str(workspace.root),
            has_folder=await asyncio.to_thread(lambda: workspace.is_in_use),
        )

    async def backups(self, caller: Caller) -> list[Backup]:
        require_viewer(caller)
        return await asyncio.to_thread(self._staff.backups)

    async def restore(self, caller: Caller, name: str) -> AgentView:
        """By the name of a backup, or by the agent's own: then from the newest."""
        require_owner(caller)
        view = await asyncio.to_thread(self._staff.restore_agent, name)
        if (hosts := await self._hosts()) is not None:
            await hosts.move(view.id, self._context.server.host)
        await self._context.apply()
        return view

    async def reset(self, caller: Caller, *agents: str) -> tuple[str, ...]:
        """Their next turns begin new sessions; of several, all are there or none is reset."""
        require_owner(caller)
        found = [await asyncio.to_thread(self._staff.agent, agent) for agent in agents]
        office = (await self._context.control()).office
        for view in found:
            await office.reset(view.id)
        return tuple(view.id for view in found)

    # what is in the workspace

    async def read_prompt(self, caller: Caller, agent: str) -> WorkspaceText:
        require_viewer(caller)
        return await self._read(agent, INSTRUCTIONS)

    async def write_prompt(self, caller: Caller, agent: str, content: str) -> None:
        require_owner(caller)
        await self._write(agent, INSTRUCTIONS, content)

    async def read_memory(self, caller: Caller, agent: str) -> AgentMemory:
        require_viewer(caller)
        place = await self._workspace(agent)
        found = await asyncio.to_thread(memory_index.notes, place.root)
        files = tuple((note.path.name, str(note.path.relative_to(memory_index.FOLDER))) for note in found)
        return AgentMemory(memory_index.index(found), files, str(place.root / memory_index.FOLDER))

    async def read_note(self, caller: Caller, agent: str, path: str) -> WorkspaceText:
        """One of the files that `read_memory` names."""
        require_owner(caller)
        place = await self._workspace(agent)

        def read() -> WorkspaceText:
            for note in memory_index.notes(place.root):
                if str(note.path.relative_to(memory_index.FOLDER)) == path:
                    file = place.root / note.path
                    return WorkspaceText(str(file), file.read_text("utf-8", errors="replace"))
            raise NoteNotFound(agent=agent, path=path)

        return await asyncio.to_thread(read)

    async def read_heartbeat(self, caller: Caller, agent: str) -> AgentHeartbeat:
        require_viewer(caller)
        text = await self._read(agent, HEARTBEAT)
        settings = await asyncio.to_thread(self._context.file.load)
        beat = settings.present_agents()[agent.lower()].heartbeat
        return AgentHeartbeat(text.path, text.content, beat.enabled, beat.interval)

    async def change_heartbeat(
        self, caller: Caller, agent: str, *, content: str | None = None, **changes: Any
    ) -> None:
        """The question; whether it is asked (`enabled`), and how often (`interval`)."""
        require_owner(caller)
        await self._write(agent, HEARTBEAT, content)
        if changes:
            await asyncio.to_thread(self._staff.change_agent, agent, {"heartbeat": changes})
            await self._context.apply()

    async def list_skills(self, caller: Caller, agent: str) -> list[dict[str, str]]:
        require_viewer(caller)
        return await asyncio.to_thread(skill_registry.installed, await self._workspace(agent))

    async def find_skills(self, caller: Caller, agent: str, query: str) -> dict[str, Any]:
        require_owner(caller)
        return await skill_registry.find(await self._workspace(agent), query)

    async def install_skill(self, caller: Caller, agent: str, ref: str) -> str:
        require_owner(caller)
        return await skill_registry.install(await self._workspace(agent), ref)

    async def _workspace(self, agent: str) -> Workspace:
        workspace = await asyncio.to_thread(self._staff.workspace, agent)
        hosts = await self._hosts()
        if hosts is not None and not await hosts.is_here(workspace.agent):
            host = await hosts.find(workspace.agent) or "another one"
            raise AgentElsewhere(agent=workspace.agent, host=host)
        return workspace

    async def _read(self, agent: str, name: str) -> WorkspaceText:
        place = await self._workspace(agent)
        return WorkspaceText(str(place.root / name), await asyncio.to_thread(place.read_text, name))

    async def _write(self, agent: str, name: str, content: str | None) -> None:
        if content is not None:
            place = await self._workspace(agent)
            await asyncio.to_thread(place.write, name, content)
        else:
            await asyncio.to_thread(self._staff.agent, agent)
