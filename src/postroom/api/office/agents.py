"""Agents: who works here, what each is told, remembers and can do."""

from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Query
from pydantic import Field

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.error_responses import needs
from postroom.api.openapi import AnswerModel, Id, Limit, ObjectBody, Ok, Text, Word, answers, says
from postroom.api.responses import OK, Json
from postroom.services.office_documents import agent_document, backup_document
from postroom.settings.agents import SessionScope


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
    session: Annotated[str, says(enum=list(get_args(SessionScope)))] | None = None
    turn_timeout_s: Annotated[float, says(exclusiveMinimum=0)] | None = None
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


class SkillBody(ObjectBody):
    ref: Annotated[str, Field(min_length=1, max_length=200)]


EXAMPLE = {
    "coder": {
        "name": "Coder",
        "provider": "anthropic",
        "model": "sonnet",
        "working_directory": "/home/ann/ws/coder",
    }
}


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["agents"])
    agents, conversations = deps.services.agents, deps.services.conversations

    @api.get("/api/agents", responses=answers(dict[str, AnswerModel], example=EXAMPLE))
    async def list_agents(caller: Asked) -> Json:
        """All agents, by id."""
        found = await agents.list_all(caller)
        return Json({agent: agent_document(view) for agent, view in found.items()})

    @api.put(
        "/api/agents/{id}",
        responses=answers(Ok, 400, 409),
        openapi_extra=needs("name, provider, and model are required", "name", "provider", "model"),
    )
    async def put_agent(caller: Asked, id: Id, fields: AgentFields) -> Json:  # noqa: A002
        """Add an agent, or change one. Fields that are not named stay as they are."""
        given = fields.model_dump(exclude_none=True, exclude={"system_prompt"})
        stored = await agents.put(caller, id, given, system_prompt=fields.system_prompt)
        return Json({"ok": True, "agent": agent_document(stored.agent), "provisioned": stored.added})

    @api.delete("/api/agents/{id}", responses=answers(Ok, 404, 409))
    async def delete_agent(caller: Asked, id: Id) -> Json:  # noqa: A002
        """Remove an agent. Its folder and its entry go into a backup first."""
        removed = await agents.remove(caller, id)
        return Json({"ok": True, "backup": removed.backup, "workspace": removed.workspace})

    @api.get("/api/agent-backups", responses=answers(list[AnswerModel]))
    async def list_backups(caller: Asked) -> Json:
        """Agents that were removed, the newest first."""
        return Json([backup_document(backup) for backup in await agents.backups(caller)])

    @api.post("/api/agent-backups/{id}/restore", responses=answers(Ok, 400, 404, 409))
    async def restore_agent(caller: Asked, id: Id) -> Json:  # noqa: A002
        """Bring an agent back, by the name of a backup or by its own: then from the newest."""
        return Json({"ok": True, "agent": agent_document(await agents.restore(caller, id))})

    @api.post("/api/agents/{id}/reset", responses=answers(Ok, 404))
    async def reset(caller: Asked, id: Id) -> Json:  # noqa: A002
        """The agent's next turns begin new sessions."""
        await agents.reset(caller, id)
        return Json(OK)

    @api.get("/api/agents/{id}/system-prompt", responses=answers(AnswerModel, 404))
    async def get_prompt(caller: Asked, id: Id) -> Json:  # noqa: A002
        """The text of the workspace's AGENTS.md."""
        found = await agents.read_prompt(caller, id)
        return Json({"content": found.content, "path": found.path})

    @api.put(
        "/api/agents/{id}/system-prompt",
        responses=answers(Ok, 400, 404),
        openapi_extra=needs("content is required", "content"),
    )
    async def put_prompt(caller: Asked, id: Id, text: FileContentBody) -> Json:  # noqa: A002
        """Replace the workspace's AGENTS.md."""
        await agents.write_prompt(caller, id, text.content)
        return Json(OK)

    @api.get("/api/agents/{id}/memory", responses=answers(AnswerModel, 404))
    async def memory(caller: Asked, id: Id) -> Json:  # noqa: A002
        """What the agent remembers: the index it reads, and the files."""
        found = await agents.read_memory(caller, id)
        files = [{"name": name, "path": path} for name, path in found.files]
        return Json({"index": found.index, "files": files, "memoryDir": found.folder})

    @api.get("/api/agents/{id}/heartbeat", responses=answers(AnswerModel, 404))
    async def get_heartbeat(caller: Asked, id: Id) -> Json:  # noqa: A002
        """What the agent is asked from time to time, and whether."""
        found = await agents.read_heartbeat(caller, id)
        document = {"content": found.content, "path": found.path, "enabled": found.enabled}
        return Json(document if found.interval is None else {**document, "interval": found.interval})

    @api.put("/api/agents/{id}/heartbeat", responses=answers(Ok, 400, 404))
    async def put_heartbeat(caller: Asked, id: Id, beat: HeartbeatBody) -> Json:  # noqa: A002
        """Change the question, switch it on or off, or ask more often."""
        await agents.change_heartbeat(caller, id, **beat.model_dump(exclude_none=True))
        return Json(OK)

    @api.get("/api/agents/{id}/skills", responses=answers(list[AnswerModel], 404))
    async def list_skills(caller: Asked, id: Id) -> Json:  # noqa: A002
        """What the agent has learnt: the folders in `.agents/skills`."""
        return Json(await agents.list_skills(caller, id))

    @api.get("/api/agents/{id}/skills/registry", responses=answers(AnswerModel, 404))
    async def find_skills(
        caller: Asked,
        id: Id,  # noqa: A002
        query: Annotated[str, Query(max_length=200)] = "",
    ) -> Json:
        """Search the public registry of skills. Needs npx."""
        return Json(await agents.find_skills(caller, id, query))

    @api.post(
        "/api/agents/{id}/skills/install",
        responses=answers(Ok, 400, 404),
        openapi_extra=needs("ref is required", "ref"),
    )
    async def install_skill(caller: Asked, id: Id, wanted: SkillBody) -> Json:  # noqa: A002
        """Install a skill of the registry, named as `owner/repository@skill`. Needs npx."""
        return Json({"ok": True, "output": await agents.install_skill(caller, id, wanted.ref)})

    @api.get("/api/agents/{id}/messages", responses=answers(list[AnswerModel]))
    async def agent_messages(
        caller: Asked,
        id: Id,  # noqa: A002
        limit: Limit = 100,
        since_id: Annotated[int, Query(ge=0, le=2**53)] = 0,
    ) -> Json:
        """What was said to and by an agent, the newest first; with `since_id`, only what came after."""
        return Json(await conversations.history(caller, id, limit=limit, since=since_id))

    @api.get("/api/agent-messages", responses=answers(list[AnswerModel]))
    async def all_messages(caller: Asked, limit: Limit = 100) -> Json:
        """The same for all agents together."""
        return Json(await conversations.history(caller, limit=limit))

    return api
