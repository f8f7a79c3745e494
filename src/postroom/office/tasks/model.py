"""A task, a project and a comment as they are kept, and in the shape clients know."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from postroom.clock import iso
from postroom.errors import InvalidField
from postroom.kernel.checks import is_text
from postroom.kernel.model import Document

TASK = "task"
PROJECT = "project"
COMMENT = "comment"

TITLE_CHARS = 500
TEXT_CHARS = 40_000
NAME_CHARS = 200

COLOURS = (
    "#6366f1",
    "#8b5cf6",
    "#ec4899",
    "#f43f5e",
    "#ef4444",
    "#f97316",
    "#eab308",
    "#22c55e",
    "#14b8a6",
    "#06b6d4",
    "#3b82f6",
    "#a855f7",
)


class Status(StrEnum):
    BACKLOG = "backlog"
    TODO = "todo"
    IN_PROGRESS = "in_progress"
    REVIEW = "review"
    DONE = "done"


class ProjectStatus(StrEnum):
    ACTIVE = "active"
    ARCHIVED = "archived"


class Task(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    number: int
    title: str
    description: str = ""
    status: Status = Status.BACKLOG
    assignee: str = ""
    assignee_type: str = ""
    project: str | None = None
    sort_order: int = 0
    created_at: int = 0
    updated_at: int = 0
    prefix: str = "T"

    @property
    def identifier(self) -> str:
        return f"{self.prefix}-{self.number}"

    def document(self) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "id": self.id,
            "number": self.number,
            "title": self.title,
            "description": self.description,
            "status": self.status.value,
            "assignee": self.assignee,
            "assigneeType": self.assignee_type,
        }
        if self.project is not None:
            fields["projectId"] = self.project
        return {
            **fields,
            "sortOrder": self.sort_order,
            "createdAt": self.created_at // 1000,
            "updatedAt": self.updated_at // 1000,
            "identifier": self.identifier,
            "created_at": iso(self.created_at),
            "updated_at": iso(self.updated_at),
        }


class Project(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    description: str = ""
    prefix: str = ""
    color: str = COLOURS[0]
    status: ProjectStatus = ProjectStatus.ACTIVE
    created_at: int = 0
    updated_at: int = 0

    def document(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "prefix": self.prefix,
            "color": self.color,
            "status": self.status.value,
            "createdAt": self.created_at // 1000,
            "updatedAt": self.updated_at // 1000,
            "created_at": iso(self.created_at),
            "updated_at": iso(self.updated_at),
        }


class Comment(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    task: str
    author: str
    author_type: str
    content: str
    created_at: int = 0

    def document(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "taskId": self.task,
            "author": self.author,
            "authorType": self.author_type,
            "content": self.content,
            "createdAt": self.created_at // 1000,
            "created_at": iso(self.created_at),
        }


# What the store knows by itself, or what is found out anew, is not written into the document.
_OWN = frozenset({"id", "created_at", "updated_at"})


def data(thing: Task | Project | Comment) -> dict[str, Any]:
    fields = msgspec.to_builtins(thing)
    own = _OWN | {"prefix"} if isinstance(thing, Task) else _OWN
    return {name: value for name, value in fields.items() if name not in own}


def task_of(document: Document, prefixes: Mapping[str, str]) -> Task:
    own = _own(document)
    own["prefix"] = prefixes.get(document.data.get("project") or "", "T")
    return msgspec.convert({**document.data, **own}, Task)


def project_of(document: Document) -> Project:
    return msgspec.convert({**document.data, **_own(document)}, Project)


def comment_of(document: Document) -> Comment:
    own = {"id": document.key.rpartition("/")[2], "created_at": document.created_at}
    return msgspec.convert({**document.data, **own}, Comment)


def _own(document: Document) -> dict[str, Any]:
    return {"id": document.key, "created_at": document.created_at, "updated_at": document.updated_at}


def text(field: str, value: object, *, least: int = 0, most: int = TEXT_CHARS) -> str:
    if (
        not isinstance(value, str)
        or not is_text(value)
        or not least <= len(value.strip())
        or len(value) > most
    ):
        raise InvalidField(field, f"must be a text of {least} to {most} characters")
    return value


def status(value: object) -> Status:
    try:
        return Status(str(value))
    except ValueError:
        raise InvalidField("status", f"is {value!r}, must be one of {', '.join(Status)}") from None


def project_status(value: object) -> ProjectStatus:
    try:
        return ProjectStatus(str(value))
    except ValueError:
        raise InvalidField("status", f"is {value!r}, must be one of {', '.join(ProjectStatus)}") from None


def prefix_from(name: str) -> str:
    """Of one word its first three letters, of several their first letters."""
    words = re.findall(r"[^\W_]+", name)
    letters = words[0][:3] if len(words) == 1 else "".join(word[0] for word in words[:3])
    return letters.upper() or "P"
