"""All services over one room. Every entrance is handed one of these, or something that looks like it."""

import inspect
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from postroom.clock import Clock
from postroom.errors import Invalid
from postroom.kernel.erasure.subject import ErasableLake
from postroom.runtime import Room
from postroom.services.authentication import Authentication
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service, ServiceCall
from postroom.services.context import OWN_SCOPES, ServiceContext
from postroom.services.public_ids import PublicIds
from postroom.services.rates import Rates
from postroom.services.rules import Rules


class UnknownMethod(Invalid):
    """There is no service "{service}" with a method "{method}". Are both programs of one version?"""

    code = "UNKNOWN_METHOD"


class ServiceRequest(msgspec.Struct, frozen=True):
    """A method of a service with its arguments, for a process that asks another."""

    service: str
    method: str
    args: tuple[Any, ...] = ()
    options: dict[str, Any] = {}


class Services:
    def __init__(
        self,
        room: Room,
        *,
        clock: Clock | None = None,
        rates: Rates | None = None,
        lake: ErasableLake | None = None,
        own_scopes: frozenset[str] = OWN_SCOPES,
    ) -> None:
        self._context = context = ServiceContext(room, clock=clock, lake=lake, own_scopes=own_scopes)
        self.authentication = Authentication(context, rates)
        self.rules = Rules(context)

    async def public_ids(self) -> PublicIds:
        return await self._context.public_ids()

    def call(self, caller: Caller, operation: Operation) -> ServiceCall:
        """For an entrance that refuses a call itself: the audit shall know of it."""
        return ServiceCall(self._context, caller, operation)

    def find_method(self, request: ServiceRequest) -> Callable[..., Coroutine[Any, Any, Any]]:
        """What another process may ask for: public methods of services, and nothing else."""
        service = vars(self).get(request.service)
        method = getattr(service, request.method, None) if isinstance(service, Service) else None
        if request.method.startswith("_") or not inspect.iscoroutinefunction(method):
            raise UnknownMethod(service=request.service, method=request.method)
        return method
