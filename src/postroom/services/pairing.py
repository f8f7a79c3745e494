"""Pairing: who has asked to write to the office, and who may."""

import msgspec

from postroom.office.pairing import Pairing, Pairings
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeService, require_owner


class PairingOverview(msgspec.Struct, frozen=True):
    """Strangers who wait with a code, and people who may write."""

    pending: tuple[Pairing, ...]
    approved: tuple[Pairing, ...]


class PairingService(OfficeService):
    async def _pairings(self) -> Pairings:
        return Pairings(await self._context.room(), self._context.clock)

    async def list_all(self, caller: Caller) -> PairingOverview:
        require_owner(caller)
        pairings = await self._pairings()
        return PairingOverview(tuple(await pairings.waiting()), tuple(await pairings.approved()))

    async def approve(self, caller: Caller, code: str) -> Pairing:
        """The person with this code may write."""
        require_owner(caller)
        return await (await self._pairings()).approve(code)

    async def dismiss(self, caller: Caller, code: str) -> None:
        """Forget a stranger who waits."""
        require_owner(caller)
        await (await self._pairings()).dismiss(code)

    async def revoke(self, caller: Caller, channel: str, sender: str) -> None:
        """The person may not write any more."""
        require_owner(caller)
        await (await self._pairings()).revoke(channel, sender)
