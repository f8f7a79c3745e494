"""Tenants, for the owner alone: each sees nothing of the others, and may have rates of its own."""

from typing import Any

from postroom.errors import InvalidField
from postroom.kernel import checks, service_commands
from postroom.kernel.access.permissions import TENANTS, Permission
from postroom.kernel.ports import MANY
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service, ServiceCall
from postroom.services.errors import NoSuchThing

MOST_RATE = 1_000_000
RATES = ("key", "user", "tenant")


class Tenants(Service):
    """`rates` of a tenant are requests a minute; what is not named is as for all."""

    CREATE = Operation("tenant.create", Permission.MANAGE, 201, owner=True)
    LIST = Operation("tenant.list", Permission.MANAGE, owner=True)
    SET_RATES = Operation("tenant.rates", Permission.MANAGE, owner=True)

    async def create(
        self, caller: Caller, slug: str, *, display_name: str = "", partner: str | None = None
    ) -> dict[str, Any]:
        """Another tenant. Then make a key for it."""
        async with self._call(caller, self.CREATE) as call:
            await call.allow()
            limits = self._context.room.limits
            checks.check_name("slug", slug, limits)
            for field, text in (("display_name", display_name), ("partner", partner)):
                checks.check_text(field, text, limits)
            made = {"slug": slug, "display_name": display_name, "partner": partner}
            await call.commit(_put(call, slug, made, new=True))
            return made

    async def list_all(self, caller: Caller) -> list[dict[str, Any]]:
        """All tenants, and the rates they have of their own."""
        async with self._call(caller, self.LIST) as call:

            def find(access: Access) -> list[dict[str, Any]]:
                return [each.data for each in access.reader.documents("", TENANTS, "", "", MANY)]

            return await call.look(find, quick=False)

    async def set_rates(self, caller: Caller, slug: str, rates: dict[str, int]) -> dict[str, Any]:
        """How many requests a minute the tenant has; also for the owner's own tenant."""
        async with self._call(caller, self.SET_RATES) as call:

            def change(access: Access) -> dict[str, Any]:
                found = access.reader.document("", TENANTS, slug)
                there = found is not None and not found.gone
                if not there and slug != access.tenant:
                    raise NoSuchThing(what="tenant", id=slug)
                for name, rate in rates.items():
                    if name not in RATES:
                        raise InvalidField(name, f"is no rate; known are {', '.join(RATES)}")
                    checks.check_count(name, rate, least=1, most=MOST_RATE)
                kept = found.data if found is not None and there else {"slug": slug}
                return {**kept, "rates": rates}

            data = await call.look(change)
            await call.commit(_put(call, slug, data))
            return data


def _put(
    call: ServiceCall, slug: str, data: dict[str, Any], *, new: bool = False
) -> service_commands.PutServiceDocument:
    """Tenants belong to none of them."""
    return service_commands.PutServiceDocument(
        kind=TENANTS,
        key=slug,
        data=data,
        note={"tenant": slug},
        new=new,
        label=slug,
        tenant="",
        actor=call.caller.actor,
    )
