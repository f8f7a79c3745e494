"""What people and agents say about a task."""

from postroom.errors import DocumentNotFound, InvalidField
from postroom.kernel import commands as c
from postroom.kernel.checks import is_text
from postroom.office.documents import everything, persistently, short_id
from postroom.office.ports import RoomPort
from postroom.office.tasks import model
from postroom.office.tasks.errors import CommentNotFound, TaskNotFound
from postroom.office.tasks.model import COMMENT, NAME_CHARS, TASK, Comment

# Which task a comment is about, for those who know only the comment.
PLACE = "comment.place"
AUTHORS = ("user", "agent")


class Comments:
    def __init__(self, room: RoomPort) -> None:
        self._room = room

    async def of(self, task: str) -> list[Comment]:
        """Oldest first."""
        await self._known(task)
        return await self._of(task)

    async def _of(self, task: str) -> list[Comment]:
        found = [model.comment_of(document) async for document in everything(self._room, COMMENT, f"{task}/")]
        found.sort(key=lambda comment: (comment.created_at, comment.id))
        return found

    async def count(self, task: str) -> int:
        return len(await self._of(task))

    async def add(
        self, task: str, content: str, *, author: str = "User", author_type: str = "user"
    ) -> Comment:
        model.text("content", content, least=1)
        model.text("author", author, least=1, most=NAME_CHARS)
        if author_type not in AUTHORS:
            raise InvalidField("author_type", f"is {author_type!r}, must be one of {', '.join(AUTHORS)}")
        comment = Comment(
            id=short_id("cmt"), task=task, author=author, author_type=author_type, content=content
        )
        key, actor = f"{task}/{comment.id}", self._room.actor

        async def step() -> None:
            version = await self._known(task)
            commands = (
                # A comment must not outlive a task that is removed at the same moment.
                c.ExpectDocument(kind=TASK, key=task, version=version, actor=actor),
                c.PutDocument(kind=COMMENT, key=key, data=model.data(comment), expect=0, actor=actor),
                c.PutDocument(kind=PLACE, key=comment.id, data={"task": task}, expect=0, actor=actor),
            )
            await self._room.run(c.Unit(commands=commands, actor=actor))

        await persistently(step)
        document = await self._room.document(COMMENT, key)
        if document is None:
            raise TaskNotFound(task=task)
        return model.comment_of(document)

    async def remove(self, comment: str) -> None:
        place = await self._room.document(PLACE, comment) if is_text(comment) and comment else None
        if place is None:
            raise CommentNotFound(comment=comment)
        try:
            await self._room.run(
                c.Unit(commands=tuple(self._dropped(place.data["task"], comment)), actor=self._room.actor)
            )
        except DocumentNotFound:
            raise CommentNotFound(comment=comment) from None

    async def all_dropped(self, task: str) -> list[c.Command]:
        """What removes the comments of a task."""
        commands: list[c.Command] = []
        for comment in await self._of(task):
            commands += self._dropped(task, comment.id)
        return commands

    def _dropped(self, task: str, comment: str) -> list[c.Command]:
        actor = self._room.actor
        return [
            c.DropDocument(kind=COMMENT, key=f"{task}/{comment}", actor=actor),
            c.DropDocument(kind=PLACE, key=comment, actor=actor),
        ]

    async def _known(self, task: str) -> int:
        document = await self._room.document(TASK, task) if is_text(task) and task else None
        if document is None:
            raise TaskNotFound(task=task)
        return document.version
