"""What every queue that is measured can do. Each is opened in a process of its own, on the same address."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

BATCH = 100


class Participant(Protocol):
    async def publish(self, count: int) -> None:
        """In batches of a hundred, one after the other."""
        ...

    async def publish_one(self) -> None: ...

    async def drain(self) -> int:
        """Claim and complete in batches of a hundred until nothing is left; how many these were."""
        ...


class OpenParticipant(Protocol):
    def __call__(self, url: str) -> AbstractAsyncContextManager[Participant]: ...
