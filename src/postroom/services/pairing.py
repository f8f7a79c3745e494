"""Pairing: who has asked to write to the office, and who may."""

import msgspec

from postroom.office.pairing import Pairing, Pairings, SenderRole
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

    async def approve(self, caller: Caller, code: str, role: SenderRole | None = None) -> Pairing:
        """The person with this code may write; without a role, the first of all as an owner."""
        require_owner(caller)
        return await (await self._pairings()).approve(code, role)

    async def change_role(self, caller: Caller, channel: str, sender: str, role: SenderRole) -> Pairing:
        """What a person who may write may do besides."""
        require_owner(caller)
        return await (await self._pairings()).change_role(channel, sender, role)

    async def dismiss(self, caller: Caller, code: str) -> None:
        """Forget a stranger who waits."""
        require_owner(caller)
        await (await self._pairings()).dismiss(code)

    async def revoke(self, caller: Caller, channel: str, sender: str) -> None:
        """The person may not write any more."""
        require_owner(caller)
        await (await self._pairings()).revoke(channel, sender)
