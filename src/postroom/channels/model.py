"""What passes between a channel and the office, in words that belong to no platform."""

from enum import StrEnum
from typing import Any

import msgspec

from postroom.channels.styled_text import StyledText


class Envelope(msgspec.Struct, frozen=True):
    """One event as the platform told it: its own id, and everything it said, as JSON."""

    event_id: str
    raw: Any


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where an answer goes: a chat, a thread in it, and the message it answers."""

    chat: str
    thread: str | None = None
    # What the thread is about, on platforms that say so.
    title: str | None = None
    reply_to: str | None = None


class ReceivedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file at the platform; `handle` is what the channel fetches it by."""

    handle: str
    name: str
    size: int | None = None


class ReceivedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wrote, or which button they pressed."""

    message_id: str
    chat: str
    sender_id: str
    sender: str
    text: str = ""
    thread: str | None = None
    title: str | None = None
    files: tuple[ReceivedFile, ...] = ()
    # False in a group where the bot was not meant.
    addressed: bool = True
    # What the pressed button carries; then there is no text.
    pressed: str | None = None
    # What the platform needs to be told that the press has arrived.
    press_handle: str | None = None
    # The message an answer points at, if not this one; empty: none.
    answers: str | None = None

    @property
    def address(self) -> Address:
        reply_to = self.message_id if self.answers is None else self.answers or None
        return Address(chat=self.chat, thread=self.thread, title=self.title, reply_to=reply_to)


class Choice(msgspec.Struct, frozen=True):
    """A button: what it says, and what the channel gets back when it is pressed."""

    label: str
    value: str


class PieceKind(StrEnum):
    TEXT = "text"
    FILE = "file"


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """What the platform shows as one message."""

    kind: PieceKind
    text: StyledText = StyledText("")
    path: str | None = None
    choices: tuple[Choice, ...] = ()
