"""A unit of work: several verbs and records that commit together, or not at all."""

from collections.abc import Callable
from typing import Any, Unpack

from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.runtime.command_builder import CommandBuilder, Moment, PublishOptions


class UnitBuilder:
    """Gathers what shall happen. `results` holds the answers, in order, once it is committed."""

    def __init__(self, builder: CommandBuilder) -> None:
        self._builder = builder
        self._commands: list[c.Command] = []
        self.results: list[Any] = []

    def publish(self, queue: str, body: Any = None, **options: Unpack[PublishOptions]) -> None:
        self._commands.append(self._builder.publish(queue, body, options))

    def complete(self, claimed: Message, result: Any = None) -> None:
        self._commands.append(self._builder.complete(claimed, result))

    def fail(
        self,
        claimed: Message,
        reason: str,
        *,
        kind: str | None = None,
        retry: bool = True,
        delay: float | None = None,
    ) -> None:
        self._commands.append(self._builder.fail(claimed, reason, kind, retry, delay))

    def release(self, claimed: Message) -> None:
        self._commands.append(c.Release(**self._builder.held(claimed)))

    def snooze(
        self,
        claimed: Message,
        seconds: float | None = None,
        *,
        until: Moment | None = None,
        reason: str | None = None,
    ) -> None:
        self._commands.append(self._builder.snooze(claimed, seconds, until, reason))

    def record(self, kind: str, key: str, data: dict[str, Any], *, about: Message | None = None) -> None:
        """Keep a fact (a turn, a cost) beside the messages."""
        self._commands.append(self._builder.record(kind, key, data, about))

    def add(self, command: c.Command) -> None:
        """Any other command of the kernel."""
        self._commands.append(command)

    def command(self) -> c.Unit:
        return c.Unit(commands=tuple(self._commands), actor=self._builder.actor, tenant=self._builder.tenant)


class AsyncUnit(UnitBuilder):
    def __init__(self, builder: CommandBuilder, run: Callable[[c.Command], Any]) -> None:
        super().__init__(builder)
        self._run = run

    async def __aenter__(self) -> "AsyncUnit":
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.results = await self._run(self.command())


class SyncUnit(UnitBuilder):
    def __init__(self, builder: CommandBuilder, run: Callable[[c.Command], Any]) -> None:
        super().__init__(builder)
        self._run = run

    def __enter__(self) -> "SyncUnit":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.results = self._run(self.command())
