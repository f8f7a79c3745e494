"""What every channel is. Three methods are required; the others have defaults."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, ClassVar, Protocol

import msgspec

from postroom.channels.capabilities import Capabilities
from postroom.channels.errors import FileUnavailable
from postroom.channels.model import Address, Envelope, Piece, ReceivedFile, ReceivedMessage


class EnvelopeStore(Protocol):
    """Where envelopes go, and how far the platform was read, for platforms that do not keep that."""

    async def __call__(self, envelopes: Sequence[Envelope], cursor: Mapping[str, Any] | None = None) -> None:
        """Returns when the envelopes are durable: only then may the platform be told that they arrived.

        The cursor is kept together with them; of events that leave nothing here it is not."""
        ...

    async def read_cursor(self) -> dict[str, Any]:
        """The last one that was kept; empty at first."""
        ...


class WebhookRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a platform pushed. Names of headers are in small letters."""

    method: str = "POST"
    headers: Mapping[str, str] = {}
    query: Mapping[str, str] = {}
    body: bytes = b""


class WebhookAnswer(msgspec.Struct, frozen=True):
    status: int
    text: str = ""


class Sink(Protocol):
    """Where a fetched file goes; raises when it takes no more."""

    def write(self, data: bytes) -> object: ...


class Channel(ABC):
    """One bot on one platform. It keeps nothing that must outlive the process."""

    capabilities: ClassVar[Capabilities]
    # What a phone scans to link this channel with its account, while that is waited for.
    pairing: str | None = None

    @abstractmethod
    async def receive(self, store: EnvelopeStore) -> None:
        """Until cancelled: reads the platform, hands envelopes to `store`, then acknowledges them."""

    @abstractmethod
    def read(self, envelope: Envelope) -> ReceivedMessage | None:
        """What an envelope is in the office's terms; None for what the office has no use for."""

    @abstractmethod
    async def send(self, address: Address, piece: Piece, key: str, file: BinaryIO | None) -> str:
        """Sends one piece and returns the platform's id of it, or raises a `SendProblem`.

        `key` is the same whenever the same piece is sent again. `file` is open, checked, and not too large.
        """

    async def open(self) -> None:
        """Called first: learns who the bot is, or raises `ChannelMisconfigured` with what to do."""
        return

    async def fetch_file(self, file: ReceivedFile, target: Sink) -> None:
        raise FileUnavailable(name=file.name, reason="this channel cannot fetch files.")

    async def show_typing(self, address: Address) -> None:
        """Shows that somebody is at work. Nobody is told when it fails."""
        return

    async def confirm_press(self, handle: str) -> None:
        """Tells the platform that a pressed button has arrived. Nobody is told when it fails."""
        return

    async def edit(self, address: Address, platform_id: str, piece: Piece) -> None:
        """Puts a text in the place of one that was sent; only asked of platforms with edits."""
        raise NotImplementedError

    async def accept_webhook(self, request: WebhookRequest, store: EnvelopeStore) -> WebhookAnswer:
        """Takes what the platform pushes; what it is answered."""
        return WebhookAnswer(404)

    async def close(self) -> None:
        """Ends connections."""
        return
