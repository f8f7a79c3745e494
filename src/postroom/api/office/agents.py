"""Agents: who works here, what each is told, remembers and can do."""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from postroom.api.dependencies import Dependencies
from postroom.api.error_responses import needs
from postroom.api.office import history, skill_registry
from postroom.api.openapi import AnswerModel, Id, Limit, ObjectBody, Ok, Text, Word, answers
from postroom.api.responses import OK, Json
from postroom.clock import iso
from postroom.office import memory_index
from postroom.office.agents import AgentView, Staff
from postroom.office.agents.backups import Backup
from postroom.office.workspaces import HEARTBEAT, INSTRUCTIONS, Workspace


class AgentFields(ObjectBody):
    name: Word
    provider: Word
    model: Annotated[str, Field(min_length=1, max_length=200)]
    working_directory: str | None = Field(default=None, max_length=4000)
    prompt_file: str | None = Field(default=None, max_length=4000)
    system_prompt: Text | None = Field(default=None, description="Replaces the workspace's AGENTS.md")
    heartbeat: dict[str, Any] | None = None
    fallbacks: list[dict[str, Any]] | None = None
    budget: dict[str, Any] | None = None
    session: str | None = None
    turn_timeout_s: float | None = None
    permissions: Literal["read", "workspace", "full"] | None = Field(
        default=None, description="What its tools may do; otherwise security.permissions"
    )
    sandbox: Literal["auto", "required", "off"] | None = Field(
        default=None, description="Whether its program is kept apart; otherwise security.sandbox"
    )
    readable: list[str] | None = Field(default=None, max_length=100)
    writable: list[str] | None = Field(default=None, max_length=100)


class FileContentBody(ObjectBody):
    content: Text


class HeartbeatBody(ObjectBody):
    content: Text | None = None
    enabled: bool | None = None
    interval: float | None = Field(default=None, ge=0, le=10_000_000)


class Ref(ObjectBody):
    ref: Annotated[str, Field(min_length=1, max_length=200)]


EXAMPLE = {
    "coder": {
        "name": "Coder",
        "provider": "anthropic",
        "model": "sonnet",
        "working_directory": "/home/ann/ws/coder",
    }
}


def shown(view: AgentView) -> dict[str, Any]:
    """As clients know it: what was written, with what follows where nothing was."""
    return {
        **view.settings,
        "name": view.name,
        "provider": view.provider,
        "model": view.model,
        "working_directory": view.working_directory,
    }


def _kept(backup: Backup) -> dict[str, Any]:
    """Without the entry of the settings, which may hold a secret."""
    return {
        "name": backup.name,
        "agent": backup.agent,
        "teams": list(backup.teams),
        "removed_at": iso(backup.removed_at),
        "has_workspace": backup.has_workspace,
    }


def routes(front: Dependencies) -> APIRouter:
    api = APIRouter(tags=["agents"])
    staff = Staff(front.settings, front.home, clock=front.clock)

    async def workspace(agent: str) -> Workspace:
        return await asyncio.to_thread(staff.workspace, agent)

    @api.get("/api/agents", responses=answers(dict[str, AnswerModel], example=EXAMPLE))
    async def list_agents() -> Json:
        """All agents, by id."""
        found = await asyncio.to_thread(staff.agents)
        return Json({agent: shown(view) for agent, view in found.items()})

    @api.put(
        "/api/agents/{id}",
        responses=answers(Ok, 400, 409),
        openapi_extra=needs("name, provider, and model are required", "name", "provider", "model"),
    )
    async def put_agent(id: Id, fields: AgentFields) -> Json:  # noqa: A002
        """Add an agent, or change one. Fields that are not named stay as they are."""
        given = fields.model_dump(exclude_none=True, exclude={"system_prompt"})
        view, added = await asyncio.to_thread(staff.put_agent, id, given)
        if fields.system_prompt is not None:
            place = await workspace(view.id)
            await asyncio.to_thread(place.write, INSTRUCTIONS, fields.system_prompt)
        await front.staff.apply()
        return Json({"ok": True, "agent": shown(view), "provisioned": added})

    @api.delete("/api/agents/{id}", responses=answers(Ok, 404, 409))
    async def delete_agent(id: Id) -> Json:  # noqa: A002
        """Remove an agent. Its folder and its entry go into a backup first."""
        removed = await asyncio.to_thread(staff.remove_agent, id)
        await front.staff.apply()
        return Json({"ok": True, "backup": removed.backup, "workspace": removed.workspace})

    @api.get("/api/agent-backups", responses=answers(list[AnswerModel]))
    async def list_backups() -> Json:
        """Agents that were removed, the newest first."""
        return Json([_kept(backup) for backup in await asyncio.to_thread(staff.backups)])

    @api.post("/api/agent-backups/{id}/restore", responses=answers(Ok, 400, 404, 409))
    async def restore_agent(id: Id) -> Json:  # noqa: A002
        """Bring an agent back, by the name of a backup or by its own: then from the newest."""
        view = await asyncio.to_thread(staff.restore_agent, id)
        await front.staff.apply()
        return Json({"ok": True, "agent": shown(view)})

    @api.post("/api/agents/{id}/reset", responses=answers(Ok, 404))
    async def reset(id: Id) -> Json:  # noqa: A002
        """The agent's next turns begin new sessions."""
        view = await asyncio.to_thread(staff.agent, id)
        await front.staff.office.reset(view.id)
        return Json(OK)

    @api.get("/api/agents/{id}/system-prompt", responses=answers(AnswerModel, 404))
    async def get_prompt(id: Id) -> Json:  # noqa: A002
        """The text of the workspace's AGENTS.md."""
        place = await workspace(id)
        content = await asyncio.to_thread(place.read_text, INSTRUCTIONS)
        return Json({"content": content, "path": str(place.root / INSTRUCTIONS)})

    @api.put(
        "/api/agents/{id}/system-prompt",
        responses=answers(Ok, 400, 404),
        openapi_extra=needs("content is required", "content"),
    )
    async def put_prompt(id: Id, text: FileContentBody) -> Json:  # noqa: A002
        """Replace the workspace's AGENTS.md."""
        place = await workspace(id)
        await asyncio.to_thread(place.write, INSTRUCTIONS, text.content)
        return Json(OK)

    @api.get("/api/agents/{id}/memory", responses=answers(AnswerModel, 404))
    async def memory(id: Id) -> Json:  # noqa: A002
        """What the agent remembers: the index it reads, and the files."""
        place = await workspace(id)
        found = await asyncio.to_thread(memory_index.notes, place.root)
        files = [
            {"name": note.path.name, "path": str(note.path.relative_to(memory_index.FOLDER))}
            for note in found
        ]
        index = memory_index.index(found)
        return Json({"index": index, "files": files, "memoryDir": str(place.root / memory_index.FOLDER)})

    @api.get("/api/agents/{id}/heartbeat", responses=answers(AnswerModel, 404))
    async def get_heartbeat(id: Id) -> Json:  # noqa: A002
        """What the agent is asked from time to time, and whether."""
        place = await workspace(id)
        content = await asyncio.to_thread(place.read_text, HEARTBEAT)
        beat = front.staff.settings.present_agents()[place.agent].heartbeat
        found: dict[str, Any] = {
            "content": content,
            "path": str(place.root / HEARTBEAT),
            "enabled": beat.enabled,
        }
        if beat.interval is not None:
            found["interval"] = beat.interval
        return Json(found)

    @api.put("/api/agents/{id}/heartbeat", responses=answers(Ok, 400, 404))
    async def put_heartbeat(id: Id, pulse: HeartbeatBody) -> Json:  # noqa: A002
        """Change the question, switch it on or off, or ask more often."""
        place = await workspace(id)
        if pulse.content is not None:
            await asyncio.to_thread(place.write, HEARTBEAT, pulse.content)
        changes = pulse.model_dump(exclude_none=True, exclude={"content"})
        if changes:
            before = (await asyncio.to_thread(staff.agent, id)).settings.get("heartbeat") or {}
            await asyncio.to_thread(staff.change_agent, id, {"heartbeat": {**before, **changes}})
            await front.staff.apply()
        return Json(OK)

    @api.get("/api/agents/{id}/skills", responses=answers(list[AnswerModel], 404))
    async def list_skills(id: Id) -> Json:  # noqa: A002
        """What the agent has learnt: the folders in `.agents/skills`."""
        place = await workspace(id)
        return Json(await asyncio.to_thread(skill_registry.installed, place))

    @api.get("/api/agents/{id}/skills/registry", responses=answers(AnswerModel, 404))
    async def find_skills(id: Id, query: Annotated[str, Query(max_length=200)] = "") -> Json:  # noqa: A002
        """Search the public registry of skills. Needs npx."""
        place = await workspace(id)
        return Json(await skill_registry.find(place, query))

    @api.post(
        "/api/agents/{id}/skills/install",
        responses=answers(Ok, 400, 404),
        openapi_extra=needs("ref is required", "ref"),
    )
    async def install_skill(id: Id, wanted: Ref) -> Json:  # noqa: A002
        """Install a skill of the registry, named as `owner/repository@skill`. Needs npx."""
        place = await workspace(id)
        return Json({"ok": True, "output": await skill_registry.install(place, wanted.ref)})

    @api.get("/api/agents/{id}/messages", responses=answers(list[AnswerModel]))
    async def agent_messages(
        id: Id,  # noqa: A002
        limit: Limit = 100,
        since_id: Annotated[int, Query(ge=0, le=2**53)] = 0,
    ) -> Json:
        """What was said to and by an agent, the newest first; with `since_id`, only what came after."""
        return Json(await history.of_agent(front.room, id, limit, since_id))

    @api.get("/api/agent-messages", responses=answers(list[AnswerModel]))
    async def all_messages(limit: Limit = 100) -> Json:
        """The same for all agents together."""
        return Json(await history.of_agent(front.room, None, limit, 0))

    return api
