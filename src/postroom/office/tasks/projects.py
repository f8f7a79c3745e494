"""Projects: each with a prefix of its own, by which its tasks are called."""

import re
from typing import Any

import msgspec

from postroom.errors import DocumentChanged, InvalidField
from postroom.kernel import commands as c
from postroom.kernel.checks import is_text
from postroom.kernel.model import Document
from postroom.office.documents import everything, persistently, short_id
from postroom.office.ports import RoomPort
from postroom.office.tasks import model
from postroom.office.tasks.errors import PrefixTaken, ProjectNotFound
from postroom.office.tasks.model import COLOURS, NAME_CHARS, PROJECT, Project

PREFIX = "project.prefix"
CHANGEABLE = frozenset({"name", "description", "prefix", "color", "status"})

_PREFIX = re.compile(r"[^\W_]{1,10}")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


class Projects:
    def __init__(self, room: RoomPort) -> None:
        self._room = room

    async def all(self, status: str | None = None) -> list[Project]:
        """Newest first."""
        found = [model.project_of(document) async for document in everything(self._room, PROJECT)]
        found.sort(key=lambda project: (project.created_at, project.id), reverse=True)
        return found if status is None else [project for project in found if project.status == status]

    async def show(self, project: str) -> Project:
        return model.project_of(await self.find(project))

    async def add(self, name: str, *, description: str = "", status: str = "active") -> Project:
        model.text("name", name, least=1, most=NAME_CHARS)
        model.text("description", description)
        key = short_id("proj")

        async def step() -> Project:
            others = await self.all()
            made = Project(
                id=key,
                name=name,
                description=description,
                prefix=_free(model.prefix_from(name), {other.prefix for other in others}),
                color=COLOURS[len(others) % len(COLOURS)],
                status=model.project_status(status),
            )
            await self._run(self._take(made), self._put(made, 0))
            return await self.show(key)

        return await persistently(step)

    async def change(self, project: str, **fields: Any) -> Project:
        _check(fields)

        async def step() -> Project:
            document = await self.find(project)
            before = model.project_of(document)
            after = msgspec.structs.replace(before, **fields)
            commands = [self._put(after, document.version)]
            if after.prefix != before.prefix:
                drop = c.DropDocument(kind=PREFIX, key=before.prefix, actor=self._room.actor)
                commands += [drop, self._take(after)]
            try:
                await self._run(*commands)
            except DocumentChanged as error:
                if error.data["kind"] == PREFIX:
                    raise PrefixTaken(prefix=after.prefix) from None
                raise
            return await self.show(project)

        return await persistently(step)

    async def find(self, project: str) -> Document:
        found = await self._room.document(PROJECT, project) if is_text(project) and project else None
        if found is None:
            raise ProjectNotFound(project=project)
        return found

    async def prefixes(self) -> dict[str, str]:
        return {project.id: project.prefix for project in await self.all()}

    def dropped(self, document: Document) -> list[c.Command]:
        """What removes a project; its tasks are the board's."""
        prefix, actor = model.project_of(document).prefix, self._room.actor
        return [
            c.DropDocument(kind=PROJECT, key=document.key, expect=document.version, actor=actor),
            c.DropDocument(kind=PREFIX, key=prefix, actor=actor),
        ]

    def _put(self, project: Project, version: int) -> c.Command:
        return c.PutDocument(
            kind=PROJECT, key=project.id, data=model.data(project), expect=version, actor=self._room.actor
        )

    def _take(self, project: Project) -> c.Command:
        data = {"id": project.id}
        return c.PutDocument(kind=PREFIX, key=project.prefix, data=data, expect=0, actor=self._room.actor)

    async def _run(self, *commands: c.Command) -> None:
        await self._room.run(c.Unit(commands=commands, actor=self._room.actor))


def _free(prefix: str, taken: set[str]) -> str:
    number = 1
    free = prefix
    while free in taken or free == "T":
        number += 1
        free = f"{prefix}{number}"
    return free


def _check(fields: dict[str, Any]) -> None:
    for field in fields:
        if field not in CHANGEABLE:
            raise InvalidField(
                field, f"is nothing to change about a project; known are {', '.join(CHANGEABLE)}"
            )
    if "name" in fields:
        model.text("name", fields["name"], least=1, most=NAME_CHARS)
    if "description" in fields:
        model.text("description", fields["description"])
    if "status" in fields:
        fields["status"] = model.project_status(fields["status"])
    if "color" in fields and not _COLOUR.fullmatch(str(fields["color"])):
        raise InvalidField("color", "must be a colour like #6366f1")
    if "prefix" in fields:
        prefix = str(fields["prefix"]).upper()
        if not _PREFIX.fullmatch(prefix) or prefix == "T":
            raise InvalidField(
                "prefix", "must be 1 to 10 letters or digits, and not T, which is for no project"
            )
        fields["prefix"] = prefix
