"""What the author of a plugin meets: the context of a hook, events, and the handle given to `activate`."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from postroom.kernel.model import Message

EVERYTHING = "*"
LEVELS = {"debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40}

Handler = Callable[["PluginEvent"], Any]


class Written(Protocol):
    """What a channel knows of a message."""

    @property
    def channel(self) -> str: ...
    @property
    def sender(self) -> str: ...
    @property
    def sender_id(self) -> str | None: ...
    @property
    def platform_id(self) -> str | None: ...
    @property
    def text(self) -> str: ...
    @property
    def agent(self) -> str | None: ...


class HookContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook may know about the text: where it comes from or goes to, and what the person wrote."""

    channel: str = ""
    sender: str = ""
    sender_id: str | None = None
    message_id: str | None = None
    original_message: str = ""
    agent: str | None = None

    @classmethod
    def of(cls, message: Message, agent: str, text: str) -> "HookContext":
        """For the answer to a message."""
        return cls(
            channel=message.channel or "",
            sender=message.sender or "",
            sender_id=message.sender_id,
            message_id=message.id,
            original_message=text,
            agent=agent,
        )

    @classmethod
    def of_incoming(cls, mail: "Written") -> "HookContext":
        """For what a person wrote; it has no id of ours yet, only the platform's."""
        return cls(
            channel=mail.channel,
            sender=mail.sender,
            sender_id=mail.sender_id,
            message_id=mail.platform_id,
            original_message=mail.text,
            agent=mail.agent,
        )


class Transformed(msgspec.Struct, frozen=True):
    """A text after all hooks, and what they say about it to the channel, such as `parseMode`."""

    text: str
    metadata: dict[str, Any] = {}


class PluginEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened. `timestamp` is in milliseconds; `seq` is the event's place in the ledger, the
    same when an event is told again."""

    type: str
    timestamp: int
    seq: int
    scope: str | None = None
    queue: str | None = None
    message_id: str | None = None
    conversation: str | None = None
    actor: str = ""
    data: dict[str, Any] = {}


class PluginContext:
    """Given to a plugin's `activate`. Handlers are registered there, and nowhere later."""

    def __init__(self, name: str, home: Path) -> None:
        self.name = name
        self.home = home
        self.handlers: list[tuple[str, Handler]] = []
        self._log = logging.getLogger(f"postroom.plugins.{name}")

    def on(self, event_type: str, handler: Handler) -> None:
        """Call `handler` for events of a type, or of all types with `*`."""
        if not isinstance(event_type, str) or not event_type or not callable(handler):
            raise TypeError("on() takes the type of an event and a function")
        self.handlers.append((event_type, handler))

    def log(self, level: str, text: str) -> None:
        self._log.log(LEVELS.get(str(level).lower(), logging.INFO), "[plugin:%s] %s", self.name, text)
