"""How many turns run at once: in all, and at each provider. A turn that falls back waits anew."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing

from postroom.office.lanes.provider_places import ProviderPlaces
from postroom.office.ports import RoomPort
from postroom.providers.protocol import Provider, TurnRequest, TurnStream

Starting = Callable[[], Awaitable[None]]
TurnPlaces = asyncio.Semaphore | ProviderPlaces


class Slots:
    def __init__(
        self,
        at_once: int = 8,
        per_provider: Mapping[str, int] | None = None,
        *,
        room: RoomPort | None = None,
        lease_s: float = 20.0,
    ) -> None:
        """With a `room` that several processes share, the turns of a provider are counted over all of
        them."""
        self._all = asyncio.Semaphore(at_once)
        # Settings may write `anthropic_api` for `anthropic-api`.
        counts = {name.replace("_", "-"): count for name, count in (per_provider or {}).items()}
        self._own: dict[str, TurnPlaces] = {
            name: ProviderPlaces(room, name, count, lease_s)
            if room is not None and room.is_shared
            else asyncio.Semaphore(count)
            for name, count in counts.items()
        }
        self._free = asyncio.Semaphore(2**31)
        # For lanes that may have mail in hand: what waits for its turn is not claimed before.
        self._lanes = asyncio.Semaphore(at_once)
        self._own_lanes = {name: asyncio.Semaphore(count) for name, count in counts.items()}

    def of(self, provider: str) -> TurnPlaces:
        return self._own.get(provider.replace("_", "-"), self._free)

    def lanes_of(self, provider: str) -> "LanePlaces":
        own = self._own_lanes.get(provider.replace("_", "-"))
        return LanePlaces(*(() if own is None else (own,)), self._lanes)

    def is_free(self, provider: str) -> bool:
        """Whether a turn could start there now."""
        return not (self._all.locked() or self.of(provider).locked())

    def limit(self, provider: Provider, starting: Starting) -> Provider:
        """The same provider, whose turns wait for a free place; `starting` is told when one has it."""
        return _Limited(provider, self, self._all, starting)


class LanePlaces:
    """Places for lanes: one of the provider, and one of all."""

    def __init__(self, *semaphores: asyncio.Semaphore) -> None:
        self._semaphores = semaphores

    def locked(self) -> bool:
        return any(semaphore.locked() for semaphore in self._semaphores)

    async def acquire(self) -> None:
        """Always in the same order, as turns do. When there is a place, it is taken without a pause."""
        taken: list[asyncio.Semaphore] = []
        try:
            for semaphore in self._semaphores:
                await semaphore.acquire()
                taken.append(semaphore)
        except asyncio.CancelledError:
            for semaphore in taken:
                semaphore.release()
            raise

    def release(self) -> None:
        for semaphore in self._semaphores:
            semaphore.release()


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
