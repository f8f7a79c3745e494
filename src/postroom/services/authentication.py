"""From a secret to a caller, once for each request; and how often callers may ask."""

from typing import Any

import msgspec

from postroom.kernel.reader import Reader
from postroom.services.callers import Caller
from postroom.services.context import ServiceContext
from postroom.services.errors import TenantNotFound, TokenExpired, TokenInvalid, TokenMissing
from postroom.services.rates import RateMeter, Rates, Standing
from postroom.services.shared_counts import SharedCounts

PARTNER_ADMIN = "partner_admin"


class Authentication:
    def __init__(self, context: ServiceContext, rates: Rates | None = None) -> None:
        self._context = context
        self._rates = rates or Rates()
        self._meter = RateMeter(context.clock)
        self.shared_counts = SharedCounts(context.room)
        self.shared_counts.add(self._meter)
        # Of each tenant, as it was when a key of it was last looked up: for every request, that is now.
        self._tenants: dict[str, dict[str, Any]] = {}

    async def find_holder(self, secret: str) -> Caller | None:
        """The holder of a key that is good at the moment."""
        try:
            return await self.require_holder(secret)
        except (TokenMissing, TokenInvalid, TokenExpired):
            return None

    async def require_holder(self, secret: str) -> Caller:
        """As `find_holder`; what is wrong with a secret is told."""
        if not secret:
            raise TokenMissing
        context, now = self._context, self._context.clock.now()
        found = await context.room.look(
            lambda reader: context.rights.at(reader).key(reader, secret), quick=True
        )
        if found is None or (found.until is not None and found.until <= now):
            raise TokenInvalid
        key = found.caller.key
        assert key is not None
        if key.revoked_at is not None:
            raise TokenInvalid
        if not key.alive(now):
            raise TokenExpired
        self._tenants[key.tenant] = found.tenant
        return found.caller

    async def choose_tenant(self, caller: Caller, wanted: str | None) -> Caller:
        """The owner may act for any tenant, a partner's administrator for the partner's; others have one."""
        if wanted is None or wanted == caller.tenant:
            return caller
        if caller.is_owner:
            return caller.of_tenant(wanted)
        key, context = caller.key, self._context
        if key is not None and key.role == PARTNER_ADMIN and key.partner is not None:

            def partner_of(reader: Reader) -> object:
                return context.rights.at(reader).tenant(reader, wanted).get("partner")

            if await context.room.look(partner_of, quick=True) == key.partner:
                return caller.of_tenant(wanted)
        raise TenantNotFound(tenant=wanted)

    async def admit(self, caller: Caller) -> Standing | None:
        """Count one request of a key's holder; the owner's own are not counted."""
        if caller.key is None:
            return None
        rates = await self._rates_of(caller)
        meters = [("key", caller.id, rates.key), ("tenant", caller.tenant, rates.tenant)]
        if caller.user_id is not None:
            meters.append(("user", f"{caller.tenant}/{caller.user_id}", rates.user))
        if caller.key.partner is not None:
            meters.append(("partner", caller.key.partner, rates.partner))
        return self._meter.spend(meters)

    async def _rates_of(self, caller: Caller) -> Rates:
        context, tenant = self._context, caller.tenant
        found = self._tenants.get(tenant) if caller.key is not None and caller.key.tenant == tenant else None
        if found is None:
            found = await context.room.look(
                lambda reader: context.rights.at(reader).tenant(reader, tenant), quick=True
            )
        rates = found.get("rates")
        return msgspec.structs.replace(self._rates, **rates) if rates else self._rates
