"""Telegram's chats: who is in them, which topics they have, and the shapes of people, chats and files on the
wire.
"""

from dataclasses import dataclass, field
from typing import Any

from postroom.testing.platforms.base import Person
from postroom.testing.platforms.transcript import Attachment


@dataclass
class TelegramChat:
    id: int
    kind: str
    title: str
    username: str | None = None
    forum: bool = False
    blocked: bool = False
    migrated_to: int | None = None
    topics: dict[int, str] = field(default_factory=dict)
    # Ids count from one in every chat: a client that takes them for unique among chats is found out.
    last_message: int = 0

    def next_message_id(self) -> int:
        self.last_message += 1
        return self.last_message

    def render(self) -> dict[str, Any]:
        shape: dict[str, Any] = {"id": self.id, "type": self.kind}
        if self.kind == "private":
            shape["first_name"] = self.title
        else:
            shape["title"] = self.title
        if self.username:
            shape["username"] = self.username
        if self.forum:
            shape["is_forum"] = True
        return shape


def render_person(person: Person) -> dict[str, Any]:
    first, _, last = person.name.partition(" ")
    shape: dict[str, Any] = {
        "id": int(person.id),
        "is_bot": False,
        "first_name": first,
        "language_code": "en",
    }
    if last:
        shape["last_name"] = last
    if person.username:
        shape["username"] = person.username
    return shape


@dataclass
class StoredFile:
    id: str
    attachment: Attachment
    # Where it may be downloaded from; given out by getFile.
    path: str

    @property
    def size(self) -> int:
        return len(self.attachment.content)

    def render(self) -> dict[str, Any]:
        return {"file_id": self.id, "file_unique_id": f"u{self.id}", "file_size": self.size}


class FileStore:
    """Files by id, whether people or the bot sent them."""

    def __init__(self) -> None:
        self._files: dict[str, StoredFile] = {}

    def add(self, attachment: Attachment) -> StoredFile:
        number = len(self._files) + 1
        ending = attachment.name.rpartition(".")[2] if "." in attachment.name else "bin"
        stored = StoredFile(f"file-{number}", attachment, f"files/file_{number}.{ending}")
        self._files[stored.id] = stored
        return stored

    def get(self, file_id: str) -> StoredFile | None:
        return self._files.get(file_id)

    def at(self, path: str) -> StoredFile | None:
        return next((stored for stored in self._files.values() if stored.path == path), None)


def choose_kind(attachment: Attachment) -> str:
    """What Telegram's apps make of a file that a person sends."""
    match attachment.media_type.split("/")[0], attachment.media_type:
        case "image", "image/jpeg" | "image/png":
            return "photo"
        case _, "audio/ogg":
            return "voice"
        case "audio", _:
            return "audio"
        case "video", _:
            return "video"
    return "document"


def render_file(kind: str, stored: StoredFile) -> Any:
    """The field `kind` of a message that carries this file."""
    shape = stored.render()
    media_type, name = stored.attachment.media_type, stored.attachment.name
    match kind:
        case "photo":
            small = {
                **shape,
                "file_id": f"{stored.id}-small",
                "file_unique_id": f"us{stored.id}",
                "file_size": 1,
            }
            return [{**small, "width": 90, "height": 90}, {**shape, "width": 1280, "height": 1280}]
        case "voice":
            return {**shape, "duration": 3, "mime_type": media_type}
        case "audio":
            return {**shape, "duration": 3, "mime_type": media_type, "file_name": name}
        case "video":
            return {
                **shape,
                "duration": 3,
                "width": 640,
                "height": 360,
                "mime_type": media_type,
                "file_name": name,
            }
    return {**shape, "mime_type": media_type, "file_name": name}
