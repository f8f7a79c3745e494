"""What people on a platform saw: every message delivered to them, with its id, edits, buttons and files."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

# How long a test waits for what must come. Only a guard against waiting for ever: nothing is measured by it.
GIVE_UP_SECONDS = 60


@dataclass(frozen=True)
class Attachment:
    name: str
    content: bytes = field(repr=False)
    media_type: str = "application/octet-stream"


@dataclass(frozen=True)
class OfferedButton:
    """A button below a message: what it says, and what the platform sends back when it is pressed."""

    label: str
    value: str


@dataclass
class Delivery:
    """One message that people see, as it is now."""

    id: str
    chat: str
    text: str
    at: int
    thread: str | None = None
    reply_to: str | None = None
    # How the text is dressed, in the platform's own terms: entities, blocks, formatted body.
    markup: Any = None
    buttons: tuple[OfferedButton, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    # Texts it had before it was edited, oldest first.
    edits: list[str] = field(default_factory=list)
    deleted: bool = False
    # Other things the sender said with it that the platform keeps.
    extra: Mapping[str, Any] = field(default_factory=dict)

    def button(self, label: str) -> OfferedButton:
        for button in self.buttons:
            if button.label == label:
                return button
        raise AssertionError(
            f"message {self.id} has no button {label!r}, only {[b.label for b in self.buttons]}"
        )


@dataclass(frozen=True)
class Act:
    """Something people saw that is not a message: typing, a reaction, a word above a pressed button."""

    kind: str
    chat: str
    at: int
    data: Mapping[str, Any] = field(default_factory=dict)


class Transcript:
    """Deliveries and acts in the order in which they happened; deleted messages stay, marked."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.acts: list[Act] = []
        self._changed = asyncio.Event()
        self._failure: str | None = None

    def add(self, delivery: Delivery) -> Delivery:
        self.deliveries.append(delivery)
        self.note_change()
        return delivery

    def add_act(self, act: Act) -> None:
        self.acts.append(act)
        self.note_change()

    def note_change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def note_failure(self, failure: str) -> None:
        """Whoever waits for a message learns at once that the fake cannot do what it was asked."""
        self._failure = failure
        self.note_change()

    def find(self, chat: str, message_id: str) -> Delivery | None:
        for delivery in self.deliveries:
            if delivery.id == message_id and delivery.chat == chat and not delivery.deleted:
                return delivery
        return None

    def select(self, containing: str = "", *, chat: str | None = None) -> list[Delivery]:
        return [
            delivery
            for delivery in self.deliveries
            if not delivery.deleted and containing in delivery.text and chat in (None, delivery.chat)
        ]

    def texts(self, chat: str | None = None) -> list[str]:
        return [delivery.text for delivery in self.select(chat=chat)]

    def exactly_one(self, containing: str, *, chat: str | None = None) -> Delivery:
        """The one message with this text; none or a second is an error that shows the transcript."""
        found = self.select(containing, chat=chat)
        if len(found) != 1:
            raise AssertionError(f"{len(found)} messages contain {containing!r}, not one:\n{self}")
        return found[0]

    async def wait_for(
        self, containing: str = "", *, chat: str | None = None, count: int = 1
    ) -> list[Delivery]:
        """Waits until at least `count` such messages stand here."""
        await self.wait_until(lambda: len(self.select(containing, chat=chat)) >= count)
        return self.select(containing, chat=chat)

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(GIVE_UP_SECONDS):
                while not holds():
                    if self._failure is not None:
                        raise AssertionError(f"{self._failure}; the transcript has:\n{self}")
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"waited {GIVE_UP_SECONDS} s in vain; the transcript has:\n{self}") from None

    def __str__(self) -> str:
        lines = [
            f"  {d.chat} #{d.id}{' (deleted)' if d.deleted else ''}: {d.text!r}"
            f"{''.join(f' [{b.label}]' for b in d.buttons)}{''.join(f' <{a.name}>' for a in d.attachments)}"
            for d in self.deliveries
        ]
        return "\n".join(lines) or "  (nothing)"
