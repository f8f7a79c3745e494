"""Agents: who works here, with what, and what each is told, remembers and can do."""

import asyncio
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from postroom.errors import NotFound
from postroom.office import memory_index, skill_registry
from postroom.office.agents import AgentExists, AgentView, Backup, Removed, Staff
from postroom.office.workspaces import HEARTBEAT, INSTRUCTIONS, Workspace
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
        made = await asyncio.to_thread(self._staff.add_agent, agent, given, force=force)
        await self._write(made.id, INSTRUCTIONS, system_prompt)
        await self._context.apply()
        return made

    async def put(
        self, caller: Caller, agent: str, fields: Mapping[str, Any], *, system_prompt: str | None = None
    ) -> StoredAgent:
        """Adds or changes; fields that are not named stay as they are."""
        require_owner(caller)
        view, added = await asyncio.to_thread(self._staff.put_agent, agent, fields)
        await self._write(view.id, INSTRUCTIONS, system_prompt)
        await self._context.apply()
        return StoredAgent(view, added)

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
        removed = await asyncio.to_thread(self._staff.remove_agent, agent)
        await self._context.apply()
        return removed

    async def backups(self, caller: Caller) -> list[Backup]:
        require_viewer(caller)
        return await asyncio.to_thread(self._staff.backups)

    async def restore(self, caller: Caller, name: str) -> AgentView:
        """By the name of a backup, or by the agent's own: then from the newest."""
        require_owner(caller)
        view = await asyncio.to_thread(self._staff.restore_agent, name)
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
        return await asyncio.to_thread(self._staff.workspace, agent)

    async def _read(self, agent: str, name: str) -> WorkspaceText:
        place = await self._workspace(agent)
        return WorkspaceText(str(place.root / name), await asyncio.to_thread(place.read_text, name))

    async def _write(self, agent: str, name: str, content: str | None) -> None:
        place = await self._workspace(agent)
        if content is not None:
            await asyncio.to_thread(place.write, name, content)
