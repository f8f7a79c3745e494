"""Conversations as Markdown files, for people who like to read them: `chats/<team or agent>/<time>_<id>.md`.

They are made from the messages, and every entry carries its message's id. So a file can be written again at
any time: what is in it stays, what is missing is added, and nothing stands there twice.
"""

import asyncio
import hashlib
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from postroom.clock import SECOND
from postroom.kernel.ledger import Event
from postroom.kernel.model import Message
from postroom.kernel.states import Change
from postroom.office import queues
from postroom.office.files import safe_name
from postroom.office.intake.routing import OfficeDirectory
from postroom.office.lanes.batches import team_of, text_of
from postroom.office.ports import RoomPort, conversation

RULE = "------"
_MARK = re.compile(r"^<!-- message ([0-9a-zA-Z-]+) -->$", re.MULTILINE)
_COUNT = re.compile(r"^\*\*Messages:\*\* \d+$", re.MULTILINE)
_SAID = frozenset({"office.mail", "office.note", "office.reply", "office.failure", "office.notice"})


class ChatEntry(msgspec.Struct, frozen=True):
    message_id: str
    title: str
    text: str


class Chats:
    """Follows the ledger: it gathers which conversations have changed, and then writes them."""

    def __init__(self, room: RoomPort, directory: OfficeDirectory, folder: Path) -> None:
        self._room = room
        self._directory = directory
        self._folder = folder
        self._changed: dict[str, None] = {}

    async def see(self, event: Event) -> None:
        if (
            event.scope == queues.SCOPE
            and event.type == Change.PUBLISHED
            and event.correlation_id is not None
        ):
            self._changed[event.correlation_id] = None

    async def flush(self) -> None:
        """One that cannot be written is kept for the next time, and holds up no other."""
        failed: dict[str, None] = {}
        problem: Exception | None = None
        try:
            while self._changed:
                # Taken out first: what changes while it is written must be written again.
                talk, _ = self._changed.popitem()
                failed[talk] = None
                try:
                    await self.write(talk)
                except OSError as error:
                    problem = error
                else:
                    del failed[talk]
        finally:
            self._changed |= failed
        if problem is not None:
            raise problem

    async def write(self, talk: str) -> Path | None:
        messages = await conversation(self._room, talk, scope=queues.SCOPE)
        first = next((m for m in messages if m.message_type == "office.mail"), None)
        if first is None:
            return None  # a heartbeat, a schedule, or a talk that was pruned
        path = self._path(first, talk)
        alone = sum(message.message_type == "office.mail" for message in messages) == 1
        entries = [entry for message in messages if (entry := self._entry(message, alone=alone)) is not None]
        await asyncio.to_thread(_written, path, self._head(first, len(entries)), entries)
        return path

    def _path(self, first: Message, talk: str) -> Path:
        place = team_of(first) or next(iter(self._directory.teams_of(first.agent or "")), first.agent or "")
        name = hashlib.sha256(talk.encode()).hexdigest()[:8]
        return self._folder / safe_name(place) / f"{_stamp(first.created_at)}_{name}.md"

    def _head(self, first: Message, count: int) -> str:
        team = team_of(first) or next(iter(self._directory.teams_of(first.agent or "")), None)
        if team is not None and team in self._directory.teams:
            title = f"# Team Conversation: {_line(self._directory.teams[team].name or team)} (@{team})"
        else:
            title = f"# Conversation: {_line(self._name(first.agent))} (@{first.agent})"
        date = _moment(first.created_at).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return "\n".join(
            (
                title,
                "",
                f"**Date:** {date}",
                f"**Channel:** {_line(first.channel or '')} | **Sender:** {_line(first.sender or '')}",
                f"**Messages:** {count}",
                "",
            )
        )

    def _entry(self, message: Message, *, alone: bool) -> ChatEntry | None:
        if message.message_type == "office.mail":
            title = "User Message" if alone else f"User Message to @{message.agent}"
            return ChatEntry(message.id, title, text_of(message))
        if message.message_type == "office.post":
            team = message.queue.removeprefix("room/")
            words = message.body.get("post", "") if isinstance(message.body, dict) else text_of(message)
            return ChatEntry(
                message.id, f"{self._name(message.from_agent)} (@{message.from_agent}) in #{team}", words
            )
        if message.message_type not in _SAID:
            return None
        if message.message_type == "office.note":
            to = f"{self._name(message.from_agent)} (@{message.from_agent}) → @{message.agent}"
            return ChatEntry(message.id, to, text_of(message))
        return ChatEntry(message.id, f"{self._name(message.agent)} (@{message.agent})", text_of(message))

    def _name(self, agent: str | None) -> str:
        known = self._directory.agents.get(agent or "")
        return (known.name if known else "") or agent or ""


def _written(path: Path, head: str, entries: list[ChatEntry]) -> None:
    """All at once, by a new file in the place of the old one."""
    try:
        before = path.read_text("utf-8")
    except FileNotFoundError:
        before = ""
    known = set(_MARK.findall(before))
    fresh = [entry for entry in entries if entry.message_id not in known]
    if not fresh:
        return
    text = before or head
    text += "".join(
        f"\n{RULE}\n\n<!-- message {entry.message_id} -->\n## {_line(entry.title)}\n\n{_quiet(entry.text)}\n"
        for entry in fresh
    )
    text = _COUNT.sub(f"**Messages:** {len(known) + len(fresh)}", text, count=1)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    with open(new, "w", encoding="utf-8", opener=_private) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _quiet(text: str) -> str:
    """A text that writes our own marks must not hide another entry."""
    return text.replace("<!-- message ", "<!- message ").strip()


def _line(text: str) -> str:
    return " ".join(text.split())


def _moment(time: int) -> datetime:
    return datetime.fromtimestamp(time / SECOND, UTC)


def _stamp(time: int) -> str:
    iso = _moment(time).isoformat(timespec="milliseconds").removesuffix("+00:00")
    return iso.replace(":", "-").replace(".", "-").replace("T", "_")
