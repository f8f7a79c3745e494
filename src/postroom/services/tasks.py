"""The board: tasks, what is said about them, and the projects they belong to."""

from collections.abc import Mapping, Sequence
from typing import Any

from postroom.office.tasks import Board
from postroom.office.tasks.model import Comment, Project, Task
from postroom.services.callers import Caller, CallerKind
from postroom.services.office_context import OfficeService, require_member, require_owner, require_viewer


class BoardService(OfficeService):
    async def _board(self) -> Board:
        return (await self._context.control()).office.board


class TaskService(BoardService):
    """Agents look after tasks too: they list, add, change and comment."""

    async def list_all(
        self,
        caller: Caller,
        *,
        project: str | None = None,
        status: str | None = None,
        assignee: str | None = None,
    ) -> list[Task]:
        require_viewer(caller, agents=True)
        return await (await self._board()).all(project=project, status=status, assignee=assignee)

    async def get(self, caller: Caller, task: str) -> Task:
        require_viewer(caller, agents=True)
        return await (await self._board()).show(task)

    async def add(self, caller: Caller, title: str, **fields: Any) -> Task:
        require_member(caller, agents=True)
        return await (await self._board()).add(title, **fields)

    async def change(self, caller: Caller, task: str, **fields: Any) -> Task:
        """An empty `project` takes it out of its project."""
        require_member(caller, agents=True)
        return await (await self._board()).change(task, **fields)

    async def reorder(self, caller: Caller, columns: Mapping[str, Sequence[str]]) -> None:
        require_member(caller)
        await (await self._board()).reorder({name: list(tasks) for name, tasks in columns.items()})

    async def remove(self, caller: Caller, task: str) -> None:
        """With its comments."""
        require_owner(caller)
        await (await self._board()).remove(task)

    async def comments(self, caller: Caller, task: str) -> list[Comment]:
        """The oldest first."""
        require_viewer(caller, agents=True)
        return await (await self._board()).comments.of(task)

    async def count_comments(self, caller: Caller, task: str) -> int:
        require_viewer(caller, agents=True)
        return await (await self._board()).comments.count(task)

    async def comment(
        self, caller: Caller, task: str, content: str, *, author: str = "", author_type: str = ""
    ) -> Comment:
        """In the caller's own name, where it is an agent; the owner's programs say whose words they bring."""
        require_member(caller, agents=True)
        if not caller.is_owner:
            author, author_type = caller.name, "agent" if caller.kind is CallerKind.AGENT else "user"
        comments = (await self._board()).comments
        return await comments.add(task, content, author=author or "User", author_type=author_type or "user")

    async def remove_comment(self, caller: Caller, comment: str) -> None:
        require_owner(caller)
        await (await self._board()).comments.remove(comment)


class ProjectService(BoardService):
    async def list_all(self, caller: Caller, status: str | None = None) -> list[Project]:
        """The newest first."""
        require_viewer(caller)
        return await (await self._board()).projects.all(status)

    async def get(self, caller: Caller, project: str) -> Project:
        require_viewer(caller)
        return await (await self._board()).projects.show(project)

    async def add(self, caller: Caller, name: str, **fields: Any) -> Project:
        """Its prefix and colour are chosen for it."""
        require_owner(caller)
        return await (await self._board()).projects.add(name, **fields)

    async def change(self, caller: Caller, project: str, **fields: Any) -> Project:
        require_owner(caller)
        return await (await self._board()).projects.change(project, **fields)

    async def remove(self, caller: Caller, project: str) -> None:
        """Its tasks stay, without one."""
        require_owner(caller)
        await (await self._board()).remove_project(project)
