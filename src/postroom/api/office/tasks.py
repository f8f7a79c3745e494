"""The board: tasks, their comments, and the projects they belong to."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.error_responses import needs
from postroom.api.openapi import AnswerModel, Id, ObjectBody, Ok, Text, answers, says
from postroom.api.responses import OK, Json
from postroom.office.tasks.model import NAME_CHARS, TEXT_CHARS, TITLE_CHARS, ProjectStatus, Status

Filter = Annotated[str | None, Query(max_length=200)]


class NewTask(ObjectBody):
    title: Annotated[str, Field(min_length=1), says(maxLength=TITLE_CHARS)]
    description: Text | None = None
    status: Annotated[str, says(enum=[*Status])] | None = None
    assignee: str | None = None
    assigneeType: str | None = None  # noqa: N815
    projectId: str | None = None  # noqa: N815


class TaskChange(ObjectBody):
    title: Annotated[str, says(minLength=1, maxLength=TITLE_CHARS)] | None = None
    description: Text | None = None
    status: Annotated[str, says(enum=[*Status])] | None = None
    assignee: str | None = None
    assigneeType: str | None = None  # noqa: N815
    projectId: str | None = None  # noqa: N815
    sortOrder: int | None = None  # noqa: N815


class Columns(ObjectBody):
    columns: dict[str, list[str]]


class NewComment(ObjectBody):
    content: Annotated[str, Field(min_length=1), says(maxLength=TEXT_CHARS)]
    author: str | None = None
    authorType: str | None = None  # noqa: N815


class NewProject(ObjectBody):
    name: Annotated[str, Field(min_length=1), says(maxLength=NAME_CHARS)]
    description: Text | None = None
    status: Annotated[str, says(enum=[*ProjectStatus])] | None = None


class ProjectChange(ObjectBody):
    name: Annotated[str, says(minLength=1, maxLength=NAME_CHARS)] | None = None
    description: Text | None = None
    prefix: str | None = None
    color: str | None = None
    status: Annotated[str, says(enum=[*ProjectStatus])] | None = None


_NAMES = {"assigneeType": "assignee_type", "projectId": "project", "sortOrder": "sort_order"}


def _fields(body: ObjectBody) -> dict[str, Any]:
    found = body.model_dump(exclude_none=True)
    # A null takes a task out of its project, as an empty text does.
    if "projectId" in body.model_fields_set and found.get("projectId") is None:
        found["projectId"] = ""
    return {_NAMES.get(name, name): value for name, value in found.items()}


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["tasks"])
    tasks, projects = deps.services.tasks, deps.services.projects

    @api.get("/api/tasks", responses=answers(list[AnswerModel]))
    async def list_tasks(
        caller: Asked,
        project: Annotated[str | None, Query(max_length=200, alias="projectId")] = None,
        status: Filter = None,
        assignee: Filter = None,
    ) -> Json:
        """All tasks, or those of a project, a column, an assignee."""
        found = await tasks.list_all(
            caller, project=project or None, status=status or None, assignee=assignee or None
        )
        return Json([task.document() for task in found])

    @api.post(
        "/api/tasks", responses=answers(Ok, 400, 404, 409), openapi_extra=needs("title is required", "title")
    )
    async def add_task(caller: Asked, task: NewTask) -> Json:
        """Add a task to the board."""
        return Json({"ok": True, "task": (await tasks.add(caller, **_fields(task))).document()})

    @api.put(
        "/api/tasks/reorder",
        responses=answers(Ok, 400, 404, 409),
        openapi_extra=needs("columns map is required", "columns"),
    )
    async def reorder(caller: Asked, wanted: Columns) -> Json:
        """Put tasks into columns, in this order."""
        await tasks.reorder(caller, wanted.columns)
        return Json(OK)

    @api.get("/api/tasks/{id}", responses=answers(AnswerModel, 404))
    async def show_task(caller: Asked, id: Id) -> Json:  # noqa: A002
        """One task, with the number of its comments."""
        task = await tasks.get(caller, id)
        return Json({**task.document(), "commentCount": await tasks.count_comments(caller, id)})

    @api.put("/api/tasks/{id}", responses=answers(Ok, 400, 404, 409))
    async def change_task(caller: Asked, id: Id, change: TaskChange) -> Json:  # noqa: A002
        """Change any of a task's fields; an empty `projectId` takes it out of its project."""
        return Json({"ok": True, "task": (await tasks.change(caller, id, **_fields(change))).document()})

    @api.delete("/api/tasks/{id}", responses=answers(Ok, 404, 409))
    async def remove_task(caller: Asked, id: Id) -> Json:  # noqa: A002
        """Remove a task and its comments."""
        await tasks.remove(caller, id)
        return Json(OK)

    @api.get("/api/tasks/{id}/comments", responses=answers(list[AnswerModel], 404))
    async def list_comments(caller: Asked, id: Id) -> Json:  # noqa: A002
        """What was said about a task, the oldest first."""
        return Json([comment.document() for comment in await tasks.comments(caller, id)])

    @api.post(
        "/api/tasks/{id}/comments",
        responses=answers(Ok, 400, 404, 409),
        openapi_extra=needs("content is required", "content"),
    )
    async def add_comment(caller: Asked, id: Id, said: NewComment) -> Json:  # noqa: A002
        """Say something about a task."""
        made = await tasks.comment(
            caller, id, said.content, author=said.author or "", author_type=said.authorType or ""
        )
        return Json({"ok": True, "comment": made.document()})

    @api.delete("/api/comments/{id}", responses=answers(Ok, 404, 409))
    async def remove_comment(caller: Asked, id: Id) -> Json:  # noqa: A002
        """Remove a comment."""
        await tasks.remove_comment(caller, id)
        return Json(OK)

    @api.get("/api/projects", responses=answers(list[AnswerModel]))
    async def list_projects(caller: Asked, status: Filter = None) -> Json:
        """All projects, the newest first."""
        return Json([project.document() for project in await projects.list_all(caller, status or None)])

    @api.post(
        "/api/projects", responses=answers(Ok, 400, 409), openapi_extra=needs("name is required", "name")
    )
    async def add_project(caller: Asked, project: NewProject) -> Json:
        """Add a project; its prefix and colour are chosen for it."""
        return Json({"ok": True, "project": (await projects.add(caller, **_fields(project))).document()})

    @api.get("/api/projects/{id}", responses=answers(AnswerModel, 404))
    async def show_project(caller: Asked, id: Id) -> Json:  # noqa: A002
        """One project."""
        return Json((await projects.get(caller, id)).document())

    @api.put("/api/projects/{id}", responses=answers(Ok, 400, 404, 409))
    async def change_project(caller: Asked, id: Id, change: ProjectChange) -> Json:  # noqa: A002
        """Change any of a project's fields."""
        return Json(
            {"ok": True, "project": (await projects.change(caller, id, **_fields(change))).document()}
        )

    @api.delete("/api/projects/{id}", responses=answers(Ok, 404, 409))
    async def remove_project(caller: Asked, id: Id) -> Json:  # noqa: A002
        """Remove a project. Its tasks stay, without one."""
        await projects.remove(caller, id)
        return Json(OK)

    return api
