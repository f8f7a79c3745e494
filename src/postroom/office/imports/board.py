"""Projects, tasks and comments, with the ids, numbers and order they had: agents speak of them by these."""

import re
from collections.abc import Callable
from typing import Any

from postroom.errors import DocumentChanged
from postroom.kernel import commands as c
from postroom.office.documents import everything
from postroom.office.imports.imported_marks import ImportedMarks
from postroom.office.imports.rows import Row, fingerprint, moment, plain
from postroom.office.imports.source import ImportSource
from postroom.office.intake.routing import OfficeDirectory
from postroom.office.ports import RoomPort
from postroom.office.tasks import model
from postroom.office.tasks.board import COUNTER, NO_PROJECT
from postroom.office.tasks.comments import AUTHORS, PLACE
from postroom.office.tasks.model import COMMENT, PROJECT, TASK, Comment, Project, ProjectStatus, Status, Task
from postroom.office.tasks.projects import PREFIX

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_PREFIX = re.compile(r"[^\W_]{1,10}")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


class BoardMove:
    def __init__(
        self, room: RoomPort, marks: ImportedMarks, directory: OfficeDirectory, names: dict[str, str]
    ) -> None:
        self._room = room
        self._marks = marks
        self._directory = directory
        self._names = names
        self._ids: dict[tuple[str, str], str] = {}
        self._used: dict[str | None, set[int]] = {}
        self._notes: list[str] = []

    async def move(self, source: ImportSource) -> list[str]:
        """What a person should know."""
        steps: tuple[tuple[str, list[Row], Callable[[Row, str], Any]], ...] = (
            ("projects", source.projects, self._project),
            ("tasks", sorted(source.tasks, key=_order), self._task),
            ("comments", source.comments, self._comment),
        )
        async for task in everything(self._room, TASK):
            self._used.setdefault(task.data.get("project"), set()).add(task.data.get("number") or 0)
        for what, rows, step in steps:
            lost = 0
            for row in rows:
                theirs = plain(row.get("id"))
                if theirs and await step(row, theirs):
                    continue
                lost += 1
            if lost:
                self._notes.append(f"{lost} of the {what} cannot be used and are left out")
        return self._notes

    async def _project(self, row: Row, theirs: str) -> bool:
        name = _cut(row.get("name"), model.NAME_CHARS)
        if not name:
            return False
        taken = {d.data.get("prefix") async for d in everything(self._room, PROJECT)}
        status = plain(row.get("status")) or ""
        colour = plain(row.get("color")) or ""

        def made(key: str) -> list[c.Command]:
            project = Project(
                id=key,
                name=name,
                description=_cut(row.get("description"), model.TEXT_CHARS),
                prefix=_free(plain(row.get("prefix")) or model.prefix_from(name), taken),
                color=colour if _COLOUR.fullmatch(colour) else model.COLOURS[0],
                status=ProjectStatus(status) if status in set(ProjectStatus) else ProjectStatus.ACTIVE,
            )
            return [
                self._new(PREFIX, project.prefix, {"id": key}),
                self._new(PROJECT, key, model.data(project)),
            ]

        await self._once("projects", PROJECT, "proj", theirs, row, made)
        return True

    async def _task(self, row: Row, theirs: str) -> bool:
        title = _cut(row.get("title"), model.TITLE_CHARS)
        if not title:
            return False
        project = self._ids.get(("projects", plain(row.get("project_id")) or ""))
        status = plain(row.get("status")) or "backlog"
        if status not in set(Status):
            self._notes.append(f'the task "{title}" had the status {status}, and is in the backlog here')
            status = "backlog"
        assignee, kind = self._assigned(row, title)
        counter = await self._room.document(COUNTER, project or NO_PROJECT)
        used, last = self._used.setdefault(project, set()), counter.data["last"] if counter else 0
        number = moment(row.get("number"))
        # Two tasks of one number cannot be told apart by it.
        number = number if number and number not in used else max({last, *used}) + 1
        count = c.PutDocument(
            kind=COUNTER,
            key=project or NO_PROJECT,
            data={"last": max(last, number)},
            expect=counter.version if counter else 0,
            history=False,
            actor=self._room.actor,
        )

        def made(key: str) -> list[c.Command]:
            task = Task(
                id=key,
                number=number,
                title=title,
                description=_cut(row.get("description"), model.TEXT_CHARS),
                status=Status(status),
                assignee=assignee,
                assignee_type=kind,
                project=project,
                sort_order=_order(row),
            )
            used.add(number)
            return [count, self._new(TASK, key, model.data(task))]

        await self._once("tasks", TASK, "task", theirs, row, made)
        return True

    def _assigned(self, row: Row, title: str) -> tuple[str, str]:
        told = plain(row.get("assignee")) or ""
        if not told:
            return "", ""
        name = self._names.get(told, told.lower())
        for kind, known in (("agent", self._directory.agents), ("team", self._directory.teams)):
            if name in known and row.get("assignee_type") in (kind, "", None):
                return name, kind
        self._notes.append(f'the task "{title}" had the assignee {told}, who is not here')
        return "", ""

    async def _comment(self, row: Row, theirs: str) -> bool:
        task = self._ids.get(("tasks", plain(row.get("task_id")) or ""))
        content = _cut(row.get("content"), model.TEXT_CHARS)
        if not content or task is None:
            return False
        if await self._room.document(TASK, task) is None:
            return True  # it was removed here meanwhile
        kind = plain(row.get("author_type")) or "user"

        def made(key: str) -> list[c.Command]:
            comment = Comment(
                id=key,
                task=task,
                author=_cut(row.get("author"), model.NAME_CHARS) or "User",
                author_type=kind if kind in AUTHORS else "user",
                content=content,
            )
            return [
                self._new(COMMENT, f"{task}/{key}", model.data(comment)),
                self._new(PLACE, key, {"task": task}),
            ]

        await self._once("comments", PLACE, "cmt", theirs, row, made)
        return True

    async def _once(
        self,
        what: str,
        kind: str,
        prefix: str,
        theirs: str,
        row: Row,
        made: Callable[[str], list[c.Command]],
    ) -> None:
        """Made now, unless it came with an earlier import; then it may have been changed or removed here."""
        mark = f"{what}/{fingerprint(theirs, moment(row.get('created_at')))}"
        known = await self._marks.of(mark)
        if known is None:
            key = theirs if _ID.fullmatch(theirs) else f"{prefix}_{fingerprint(theirs)[:8]}"
            if await self._room.document(kind, key) is not None:
                key = f"{prefix}_{fingerprint(mark)[:12]}"
            try:
                await self._marks.once(what, mark, {"id": key}, *made(key))
            except DocumentChanged as error:
                self._notes.append(f"{key} is left out: {error}")
                return
            known = {"id": key}
        self._ids[what, theirs] = known["id"]

    def _new(self, kind: str, key: str, data: dict[str, Any]) -> c.Command:
        return c.PutDocument(kind=kind, key=key, data=data, expect=0, actor=self._room.actor)


def _cut(value: object, most: int) -> str:
    return (plain(value) or "").strip()[:most]


def _order(row: Row) -> int:
    found = row.get("sort_order")
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 2**31 else 0


def _free(prefix: str, taken: set[Any]) -> str:
    """The prefix of the project, or one like it that no other has."""
    prefix = prefix.upper()
    if not _PREFIX.fullmatch(prefix) or prefix == "T":
        prefix = model.prefix_from(prefix)[:8]
    free, number = prefix, 1
    while free in taken or free == "T":
        number += 1
        free = f"{prefix[:8]}{number}"
    return free
