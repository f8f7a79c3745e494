"""The board: tasks in five columns, with an order, a number in their project, and somebody who does them."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from postroom.errors import DocumentChanged, DocumentNotFound, InvalidField
from postroom.kernel import commands as c
from postroom.kernel.checks import is_text
from postroom.kernel.model import Document
from postroom.office.documents import everything, persistently, short_id
from postroom.office.intake.intake import Incoming
from postroom.office.intake.routing import OfficeDirectory
from postroom.office.ports import RoomPort
from postroom.office.tasks import model
from postroom.office.tasks.comments import Comments
from postroom.office.tasks.errors import TaskNotFound
from postroom.office.tasks.model import TASK, TITLE_CHARS, Status, Task
from postroom.office.tasks.projects import Projects

COUNTER = "task.counter"
NO_PROJECT = "-"
CHANGEABLE = frozenset(
    {"title", "description", "status", "assignee", "assignee_type", "project", "sort_order"}
)


class Board:
    def __init__(self, room: RoomPort, directory: Callable[[], OfficeDirectory]) -> None:
        self._room = room
        self._directory = directory
        self.projects = Projects(room)
        self.comments = Comments(room)

    async def all(
        self, *, project: str | None = None, status: str | None = None, assignee: str | None = None
    ) -> list[Task]:
        """By their order, then by age."""
        prefixes = await self.projects.prefixes()
        found = [model.task_of(document, prefixes) async for document in everything(self._room, TASK)]
        wanted = {"project": project, "status": status, "assignee": assignee}
        found = [
            task
            for task in found
            if all(value is None or getattr(task, field) == value for field, value in wanted.items())
        ]
        found.sort(key=lambda task: (task.sort_order, task.created_at, task.id))
        return found

    async def show(self, task: str) -> Task:
        return model.task_of(await self._find(task), await self.projects.prefixes())

    async def add(
        self,
        title: str,
        *,
        description: str = "",
        status: str = Status.BACKLOG,
        assignee: str = "",
        assignee_type: str = "",
        project: str | None = None,
    ) -> Task:
        model.text("title", title, least=1, most=TITLE_CHARS)
        model.text("description", description)
        assignee, assignee_type = self._assigned(assignee, assignee_type)
        column, key, project = model.status(status), short_id("task"), project or None

        async def step() -> Task:
            number, commands = await self._numbered(project)
            order = max((task.sort_order for task in await self.all(status=column)), default=-1) + 1
            made = Task(
                id=key,
                number=number,
                title=title,
                description=description,
                status=column,
                assignee=assignee,
                assignee_type=assignee_type,
                project=project,
                sort_order=order,
            )
            await self._run(*commands, self._put(made, 0))
            return await self.show(key)

        return await persistently(step)

    async def change(self, task: str, **fields: Any) -> Task:
        """An empty `project` takes it out of its project. In another project it gets another number."""
        fields = self._checked(fields)

        async def step() -> Task:
            document = await self._find(task)
            before = model.task_of(document, {})
            given = dict(fields)
            if {"assignee", "assignee_type"} & fields.keys():
                given["assignee"], given["assignee_type"] = self._assigned(
                    fields.get("assignee", before.assignee), fields.get("assignee_type", "")
                )
            after = msgspec.structs.replace(before, **given)
            commands: list[c.Command] = []
            if after.project != before.project:
                number, commands = await self._numbered(after.project)
                after = msgspec.structs.replace(after, number=number)
            await self._run(*commands, self._put(after, document.version))
            return await self.show(task)

        return await persistently(step)

    async def reorder(self, columns: Mapping[str, Sequence[str]]) -> None:
        """Put these tasks into these columns, in this order. Tasks that are gone meanwhile are left out."""
        places = _places(columns)

        async def step() -> None:
            commands: list[c.Command] = []
            async for document in everything(self._room, TASK):
                if document.key not in places:
                    continue
                before = model.task_of(document, {})
                column, order = places[document.key]
                after = msgspec.structs.replace(before, status=column, sort_order=order)
                if after != before:
                    commands.append(self._put(after, document.version))
            if commands:
                await self._run(*commands)

        await persistently(step)

    async def remove(self, task: str) -> None:
        async def step() -> None:
            document = await self._find(task)
            drop = c.DropDocument(kind=TASK, key=task, expect=document.version, actor=self._room.actor)
            comments = await self.comments.all_dropped(task)
            try:
                await self._run(drop, *comments)
            except DocumentNotFound:
                raise DocumentChanged(kind=TASK, key=task, expected=0, found=0) from None

        await persistently(step)
        # What was said between the look and the end; now nothing more can be.
        left = await self.comments.all_dropped(task)
        if left:
            with contextlib.suppress(DocumentNotFound):
                await self._run(*left)

    async def remove_project(self, project: str) -> None:
        """Its tasks stay, without a project."""

        async def step() -> None:
            document = await self.projects.find(project)
            commands = self.projects.dropped(document)
            mine = [d async for d in everything(self._room, TASK) if d.data.get("project") == project]
            if mine:
                first, counting = await self._numbered(None, len(mine))
                commands += counting
                for number, each in enumerate(mine, first):
                    alone = msgspec.structs.replace(model.task_of(each, {}), project=None, number=number)
                    commands.append(self._put(alone, each.version))
            await self._run(*commands)

        await persistently(step)

    async def build_message(self, task: str, *, channel: str = "web", sender: str = "Tasks") -> Incoming:
        """The message that sends a task to whoever has it; for a page that moves it to "in progress"."""
        document = await self._find(task)
        found = model.task_of(document, {})
        if not found.assignee:
            raise InvalidField("assignee", "is empty; say who shall do the task")
        parts = [f"@{found.assignee} {found.title}", found.description, f"[task:{found.id}]"]
        return Incoming(
            channel=channel,
            sender=sender,
            text="\n\n".join(part for part in parts if part),
            platform_id=f"{found.id}.{document.version}",
        )

    async def _find(self, task: str) -> Document:
        found = await self._room.document(TASK, task) if is_text(task) and task else None
        if found is None:
            raise TaskNotFound(task=task)
        return found

    async def _numbered(self, project: str | None, count: int = 1) -> tuple[int, list[c.Command]]:
        """The next number in a project, and what takes it and the following; no number comes twice."""
        commands: list[c.Command] = []
        if project is not None:
            found = await self.projects.find(project)
            expecting = c.ExpectDocument(kind=found.kind, key=project, version=found.version)
            commands.append(expecting)
        counter = await self._room.document(COUNTER, project or NO_PROJECT)
        last = counter.data["last"] if counter else 0
        commands.append(
            c.PutDocument(
                kind=COUNTER,
                key=project or NO_PROJECT,
                data={"last": last + count},
                expect=counter.version if counter else 0,
                history=False,
                actor=self._room.actor,
            )
        )
        return last + 1, commands

    def _assigned(self, assignee: object, kind: object) -> tuple[str, str]:
        """Who it is, and whether that is an agent or a team."""
        if assignee in ("", None):
            return "", ""
        directory = self._directory()
        name = str(assignee).lower()
        kinds = [
            known
            for known, names in (("agent", directory.agents), ("team", directory.teams))
            if name in names and kind in ("", None, known)
        ]
        if not kinds:
            raise InvalidField("assignee", f'there is no {kind or "agent or team"} "{assignee}"')
        return name, kinds[0]

    def _checked(self, fields: dict[str, Any]) -> dict[str, Any]:
        for field in fields:
            if field not in CHANGEABLE:
                known = ", ".join(sorted(CHANGEABLE))
                raise InvalidField(field, f"is nothing to change about a task; known are {known}")
        fields = dict(fields)
        if "title" in fields:
            model.text("title", fields["title"], least=1, most=TITLE_CHARS)
        if "description" in fields:
            model.text("description", fields["description"])
        if "status" in fields:
            fields["status"] = model.status(fields["status"])
        if "project" in fields:
            fields["project"] = fields["project"] or None
        order = fields.get("sort_order", 0)
        if not isinstance(order, int) or isinstance(order, bool) or not 0 <= order < 2**31:
            raise InvalidField("sort_order", "must be a whole number, 0 or more")
        return fields

    def _put(self, task: Task, version: int) -> c.Command:
        return c.PutDocument(
            kind=TASK, key=task.id, data=model.data(task), expect=version, actor=self._room.actor
        )

    async def _run(self, *commands: c.Command) -> None:
        await self._room.run(c.Unit(commands=commands, actor=self._room.actor))


def _places(columns: object) -> dict[str, tuple[Status, int]]:
    if not isinstance(columns, Mapping):
        raise InvalidField("columns", "must be a map of columns to lists of tasks")
    places: dict[str, tuple[Status, int]] = {}
    for name, tasks in columns.items():
        column = model.status(name)
        if not isinstance(tasks, Sequence) or isinstance(tasks, str):
            raise InvalidField(f"columns.{name}", "must be a list of tasks")
        for order, task in enumerate(tasks):
            if not isinstance(task, str) or task in places:
                raise InvalidField(f"columns.{name}", f"has {task!r}, which is no task or is there twice")
            places[task] = (column, order)
    return places
