"""What every fake platform has: a life on loopback, a clock the test holds, faults, a transcript, and a loud
end.

A fake speaks the platform's real protocol. What it does not implement it refuses, and remembers: leaving the
`async with` block raises everything remembered, so that no test passes on what the fake only seemed to do.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, Self

from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.faults import FaultPlan
from postroom.testing.platforms.transcript import Transcript

LOOPBACK = "127.0.0.1"


class FakePlatformFailure(AssertionError):
    """A fake platform was asked for something it does not implement, or a planned fault never happened."""


@dataclass(frozen=True)
class Person:
    """Somebody on the platform, who is not the bot."""

    id: str
    name: str
    username: str | None = None


@dataclass(frozen=True)
class InboundEvent:
    """Something a person did that the platform tells the bot, by the platform's own ids."""

    id: str
    chat: str
    message_id: str


class FakePlatform(ABC):
    """Use it as `async with`; connect the platform's own client library to `url`."""

    name: ClassVar[str]

    def __init__(self, *, clock: HeldClock | None = None) -> None:
        self.clock = clock or HeldClock()
        self.faults = FaultPlan()
        self.transcript = Transcript()
        self.failures: list[str] = []
        self._port = 0

    @property
    def port(self) -> int:
        if not self._port:
            raise RuntimeError(f"the fake {self.name} has no address before it is entered: async with …")
        return self._port

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def record_failure(self, what: str) -> None:
        """Remembers what this fake cannot do, or what a client did that the platform would never allow."""
        failure = f"fake {self.name}: {what}"
        # Once: a client that repeats itself says nothing new.
        if failure not in self.failures:
            self.failures.append(failure)
        self.transcript.note_failure(failure)

    async def go_away(self) -> None:
        """The platform is gone: connections break, new ones are refused. What it holds stays."""
        await self._close()

    async def come_back(self) -> None:
        """The platform is there again, at the same address."""
        self._port = await self._open(self.port)

    @abstractmethod
    async def _open(self, port: int) -> int:
        """Listens at this port (0: any) and returns the port."""

    @abstractmethod
    async def _close(self) -> None:
        """Stops listening and breaks every connection, at once. May be called again."""

    async def __aenter__(self) -> Self:
        self._port = await self._open(0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._close()
        complaints = self.failures + [
            f"fake {self.name}: the fault planned for {call} never happened: {fault}"
            for call, fault in self.faults.outstanding
        ]
        if not complaints:
            return
        if error is None:
            raise FakePlatformFailure("\n".join(complaints))
        for complaint in complaints:
            error.add_note(complaint)
