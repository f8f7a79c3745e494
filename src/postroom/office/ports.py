"""What the office needs of a room: it knows the kernel's commands and nothing of stores."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from postroom.kernel import commands as c
from postroom.kernel.budgets.model import Budget
from postroom.kernel.ledger import Event, Head
from postroom.kernel.model import Document, Message, Position, Queue, Record, Subscription
from postroom.kernel.reader import Reader

T = TypeVar("T")


class MessageListing(Protocol):
    @property
    def messages(self) -> list[Message]: ...

    @property
    def next_cursor(self) -> str | None: ...


class LeaderPort(Protocol):
    """Leadership under a name: one process at a time has it."""

    @property
    def holder(self) -> str: ...

    @property
    def leads(self) -> bool: ...

    @property
    def term(self) -> int: ...

    async def lead(self) -> bool: ...

    async def resign(self) -> None: ...

    def stop(self) -> None: ...

    def wake(self) -> None: ...

    async def run(
        self,
        *work: Callable[[], Coroutine[Any, Any, None]],
        finish: Callable[[], Awaitable[None]] | None = None,
    ) -> None: ...

    async def run_rounds(self, work: Callable[[], Awaitable[float]]) -> None: ...

    async def round(self, work: Callable[[], Awaitable[float]]) -> float: ...


class LedgerReaderPort(Protocol):
    """A reader of the ledger whose position is kept under a name."""

    position: int

    async def open(self) -> int: ...

    def events(self, *, follow: bool = True) -> AsyncGenerator[Event, None]: ...

    async def save(self, *, hold: bool = True) -> None: ...


class RoomPort(Protocol):
    @property
    def actor(self) -> str: ...

    @property
    def is_shared(self) -> bool: ...

    def run(self, command: c.Command) -> Awaitable[Any]: ...

    def may_delete(self) -> bool: ...

    async def look(self, question: Callable[[Reader], T], *, quick: bool = False) -> T: ...

    async def claim(
        self,
        *queues: str,
        limit: int | None = 1,
        wait: float = 0,
        lease: float | None = None,
        subscription: str | None = None,
        worker: str | None = None,
        ids: Sequence[str] = (),
    ) -> list[Message]: ...

    async def get(self, message_id: str) -> Message: ...

    async def messages(
        self, *, cursor: str | None = None, limit: int = 100, **wanted: Any
    ) -> MessageListing: ...

    async def records(
        self, kind: str, key: str | None = None, *, after: int = 0, limit: int = 100
    ) -> list[Record]: ...

    async def latest_record(self, kind: str, key: str) -> Record | None: ...

    async def record_numbered(self, number: int) -> Record | None: ...

    async def accounts(self, *names: str) -> dict[str, Budget]: ...

    async def list_accounts(
        self, prefix: str = "", *, frozen: bool = False, after: str = "", limit: int = 100
    ) -> list[Budget]: ...

    async def document(self, kind: str, key: str) -> Document | None: ...

    async def documents(
        self, kind: str, *, prefix: str = "", after: str = "", limit: int = 100
    ) -> list[Document]: ...

    async def queues(self, scope: str | None = None) -> list[Queue]: ...

    async def document_changes(self, kind: str) -> int: ...

    async def subscriptions(self, queue: str) -> list[Subscription]: ...

    def events(self, after: int = 0, *, follow: bool = False) -> AsyncGenerator[Event, None]: ...

    def ledger_reader(
        self,
        name: str = "",
        *,
        after: int | None = None,
        save_s: float = 1.0,
        save_events: int = 500,
        before_save: Callable[[], Awaitable[bool]] = ...,
    ) -> LedgerReaderPort: ...

    def leader(self, name: str, *, lease_s: float = 15.0) -> LeaderPort: ...

    async def head(self) -> Head: ...

    async def positions(self) -> list[Position]: ...


async def conversation(room: RoomPort, correlation_id: str, *, scope: str) -> list[Message]:
    """All messages of a conversation that are kept, in the order of entry, without deliveries to rooms."""
    found: list[Message] = []
    cursor: str | None = None
    while True:
        page = await room.messages(scope=scope, correlation_id=correlation_id, cursor=cursor, limit=500)
        found += page.messages
        cursor = page.next_cursor
        if cursor is None:
            return found
