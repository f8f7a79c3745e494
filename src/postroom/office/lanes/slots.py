"""How many turns run at once: in all, and at each provider. A turn that falls back waits anew."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing

from postroom.providers.protocol import Provider, TurnRequest, TurnStream

Starting = Callable[[], Awaitable[None]]


class Slots:
    def __init__(self, at_once: int = 8, per_provider: Mapping[str, int] | None = None) -> None:
        self._all = asyncio.Semaphore(at_once)
        # Settings may write `anthropic_api` for `anthropic-api`.
        self._own = {
            name.replace("_", "-"): asyncio.Semaphore(count) for name, count in (per_provider or {}).items()
        }
        self._free = asyncio.Semaphore(2**31)

    def of(self, provider: str) -> asyncio.Semaphore:
        return self._own.get(provider.replace("_", "-"), self._free)

    def is_free(self, provider: str) -> bool:
        """Whether a turn could start there now."""
        return not (self._all.locked() or self.of(provider).locked())

    def limit(self, provider: Provider, starting: Starting) -> Provider:
        """The same provider, whose turns wait for a free place; `starting` is told when one has it."""
        return _Limited(provider, self, self._all, starting)


class _Limited:
    def __init__(self, provider: Provider, slots: Slots, all_: asyncio.Semaphore, starting: Starting) -> None:
        self.name = provider.name
        self._provider = provider
        self._own = slots.of(provider.name)
        self._all = all_
        self._starting = starting

    async def run(self, request: TurnRequest) -> TurnStream:
        # Always in this order, or two turns could wait for each other.
        async with self._own, self._all:
            await self._starting()
            async with aclosing(self._provider.run(request)) as events:
                async for event in events:
                    yield event
