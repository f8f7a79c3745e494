"""What every channel is. Three methods are required; the others have defaults."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import BinaryIO, ClassVar, Protocol

from postroom.channels.capabilities import Capabilities
from postroom.channels.errors import FileUnavailable
from postroom.channels.model import Address, Envelope, Piece, ReceivedFile, ReceivedMessage

# Returns when the envelopes are durable: only then may the platform be told that they arrived.
Store = Callable[[Sequence[Envelope]], Awaitable[None]]


class Sink(Protocol):
    """Where a fetched file goes; raises when it takes no more."""

    def write(self, data: bytes) -> object: ...


class Channel(ABC):
    """One bot on one platform. It keeps nothing that must outlive the process."""

    capabilities: ClassVar[Capabilities]

    @abstractmethod
    async def receive(self, store: Store) -> None:
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

    async def accept_webhook(self, headers: Mapping[str, str], body: bytes, store: Store) -> int:
        """Takes what the platform pushes, and returns the HTTP status it is answered with."""
        return 404

    async def close(self) -> None:
        """Ends connections."""
        return
