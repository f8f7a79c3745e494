"""What the office needs of a room: it knows the kernel's commands and nothing of stores."""

from collections.abc import Awaitable
from typing import Any, Protocol

from postroom.kernel import commands as c
from postroom.kernel.model import Message, Record


class PostRoom(Protocol):
    @property
    def actor(self) -> str: ...

    def run(self, command: c.Command) -> Awaitable[Any]: ...

    async def claim(
        self,
        *queues: str,
        limit: int | None = 1,
        wait: float = 0,
        lease: float | None = None,
        subscription: str | None = None,
        worker: str | None = None,
    ) -> list[Message]: ...

    async def latest_record(self, kind: str, key: str) -> Record | None: ...
