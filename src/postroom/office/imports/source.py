"""What the other program left on the disk, of any age. It is only read, and its databases from copies, so
that nothing of it changes, not even beside it."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from postroom.errors import NotFound
from postroom.office.imports import rows
from postroom.office.imports.database import Database, opened
from postroom.office.imports.queue_files import LEAVING, WAITING, read_queue_files
from postroom.office.imports.rows import ImportedAnswer, ImportedMessage, ImportedPost, Row, Said
from postroom.settings import repair
from postroom.settings.paths import expanded

HOMES = {"tinyagi": "~/.tinyagi", "tinyclaw": "~/.tinyclaw"}
DATABASES = {"tinyagi": ("tinyagi.db", "tinyclaw.db"), "tinyclaw": ("tinyclaw.db", "tinyagi.db")}
# The agent of an installation without any.
ONLY_AGENT = {"tinyagi": ("tinyagi", "TinyAGI Agent"), "tinyclaw": ("default", "Default")}
OPEN = ("pending", "queued", "processing")
# Nobody fetches answers from these; what was never delivered there is in the history.
SILENT = frozenset({"web", "api", "cli", "heartbeat", "schedule", "chatroom"})
MOST_BYTES = 64 * 1024 * 1024


class SourceMissing(NotFound):
    """There is no installation in {path}: it has neither settings nor a queue. Name its folder."""

    code = "IMPORT_SOURCE_NOT_FOUND"


class ImportSource(msgspec.Struct, kw_only=True):
    path: Path
    kind: str
    notes: list[str]
    settings: dict[str, Any] = {}
    mail: list[ImportedMessage] = []
    answers: list[ImportedAnswer] = []
    pairings: dict[str, Any] = {}
    schedules: list[Row] = []
    projects: list[Row] = []
    tasks: list[Row] = []
    comments: list[Row] = []
    chats: list[Path] = []
    database: Database | None = None
    running: int | None = None
    """The process that works there, if one does."""

    @property
    def workspace(self) -> Path:
        part = self.settings.get("workspace")
        named = part.get("path") if isinstance(part, dict) else None
        path = expanded(named if isinstance(named, str) and named else f"~/{self.kind}-workspace")
        return path if path.is_absolute() else Path.home() / path

    @property
    def keeps_history(self) -> bool:
        """Whether it had a table for what was said; before, the messages themselves are all there is."""
        return self.database is not None and self.database.has("agent_messages")

    def history_count(self) -> int:
        if self.keeps_history and self.database is not None:
            return self.database.count("agent_messages")
        return sum(1 for _ in self._from_messages())

    def history(self, after: int = 0) -> Iterator[tuple[int, Said]]:
        """Each with its number, after which to go on."""
        if self.keeps_history and self.database is not None:
            found = self.database.rows("agent_messages", after=after)
            yield from self._numbered(found, rows.said, "the lines of history")
        else:
            yield from (
                (number, said) for number, said in enumerate(self._from_messages(), 1) if number > after
            )

    def posts_count(self) -> int:
        return self.database.count("chat_messages") if self.database is not None else 0

    def posts(self, after: int = 0) -> Iterator[tuple[int, ImportedPost]]:
        if self.database is not None:
            found = self.database.rows("chat_messages", after=after)
            yield from self._numbered(found, rows.post, "the posts of team rooms")

    def _numbered(self, found: Iterator[Row], read: Any, what: str) -> Iterator[tuple[int, Any]]:
        return rows.usable(found, lambda row: (row["rowid"], read(row)), what, self.notes)

    def _from_messages(self) -> Iterator[Said]:
        talk: list[Said] = []
        fallback = ONLY_AGENT[self.kind][0]
        for mail in self.mail:
            if mail.status == "completed" and mail.from_agent is None:
                talk.append(_line(mail.agent or fallback, "user", mail.sender, mail))
        for answer in self.answers:
            if answer.status == "acked" or answer.channel in SILENT:
                agent = answer.agent or fallback
                talk.append(_line(agent, "assistant", agent, answer))
        yield from sorted(talk, key=lambda said: said.at)


def _line(agent: str, role: str, sender: str, of: ImportedMessage | ImportedAnswer) -> Said:
    return Said(
        agent=agent,
        role=role,
        channel=of.channel,
        sender=sender,
        message_id=of.message_id,
        text=of.text,
        at=of.at,
    )


@contextlib.contextmanager
def open_source(kind: str, folder: str | None = None) -> Iterator[ImportSource]:
    """Its databases can be read while this lasts."""
    path = _place(kind, Path(folder or HOMES[kind]).expanduser().absolute())
    notes: list[str] = []
    with contextlib.ExitStack() as stack:
        source = ImportSource(
            path=path, kind=kind, notes=notes, settings=_settings(path / "settings.json", notes)
        )
        source.running = _process(path)
        for name in DATABASES[kind]:
            if (path / name).is_file() and source.database is None:
                source.database = stack.enter_context(opened(path / name, notes))
        _read_queue(source)
        _read_board(source, stack)
        pairings = _json(path / "pairing.json", notes)
        source.pairings = pairings if isinstance(pairings, dict) else {}
        source.schedules = _list(_json(path / "schedules.json", notes))
        source.chats = sorted(each for each in (path / "chats").glob("*/*.md") if each.is_file())
        yield source


def _place(kind: str, path: Path) -> Path:
    """The folder itself, or the one inside a checkout from which the program was run."""
    for place in (path, *(path / Path(home).name for home in HOMES.values())):
        names = ("settings.json", *DATABASES[kind])
        if any((place / name).is_file() for name in names) or (place / "queue" / "incoming").is_dir():
            return place
    raise SourceMissing(path=str(path))


def _read_queue(source: ImportSource) -> None:
    notes, database = source.notes, source.database
    if database is not None:
        source.mail = list(rows.usable(database.rows("messages"), rows.mail, "the messages", notes))
        source.answers = list(rows.usable(database.rows("responses"), rows.answer, "the answers", notes))
    waiting = read_queue_files(source.path, WAITING, notes)
    leaving = read_queue_files(source.path, LEAVING, notes)
    source.mail += rows.usable(waiting, rows.mail, "the files of the queue", notes)
    source.answers += rows.usable(leaving, rows.answer, "the files of the queue", notes)


def _read_board(source: ImportSource, stack: contextlib.ExitStack) -> None:
    path, notes = source.path, source.notes
    if (path / "tasks.db").is_file():
        database = stack.enter_context(opened(path / "tasks.db", notes))
        if database is not None:
            for name in ("projects", "tasks", "comments"):
                setattr(source, name, [_readable(row) for row in database.rows(name)])
    # Earlier generations kept them as JSON, which is renamed when it has been taken into the database.
    for name in ("projects", "tasks"):
        if not getattr(source, name):
            found = _list(_json(path / f"{name}.json", notes))
            setattr(source, name, [_snake(row) for row in found])


def _readable(row: Row) -> Row:
    return {name: rows.plain(value) if isinstance(value, bytes) else value for name, value in row.items()}


_SNAKE = {
    "assigneeType": "assignee_type",
    "projectId": "project_id",
    "createdAt": "created_at",
    "sortOrder": "sort_order",
}


def _snake(row: Row) -> Row:
    return {_SNAKE.get(name, name): value for name, value in row.items()}


def _list(value: object) -> list[Row]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(path: Path, notes: list[str]) -> str | None:
    try:
        if not path.is_file():
            return None
        if path.stat().st_size > MOST_BYTES:
            notes.append(f"{path.name} is too large and left out")
            return None
        return path.read_text("utf-8-sig", "replace")
    except OSError as error:
        notes.append(f"{path.name} cannot be read ({error.strerror}) and is left out")
        return None


def _json(path: Path, notes: list[str]) -> Any:
    text = _text(path, notes)
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        notes.append(f"{path.name} is damaged and left out")
        return None


def _settings(path: Path, notes: list[str]) -> dict[str, Any]:
    text = _text(path, notes)
    if text is None:
        return {}
    with contextlib.suppress(ValueError, RecursionError):
        return repair.read(text)
    try:
        found = repair.repair(text)
    except (repair.BeyondRepair, RecursionError):
        notes.append("settings.json is damaged beyond repair and left out")
        return {}
    notes.append("settings.json is damaged; what could be read of it is taken")
    return found.document


def _process(path: Path) -> int | None:
    for name in ("tinyagi.pid", "tinyclaw.pid"):
        with contextlib.suppress(OSError, ValueError, OverflowError):
            number = int((path / name).read_text("ascii")[:20])
            if number > 0:
                os.kill(number, 0)
                return number
    return None
