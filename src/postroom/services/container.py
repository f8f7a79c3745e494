"""All services over one room. Every entrance is handed one of these, or something that looks like it."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from postroom.clock import Clock
from postroom.errors import Invalid
from postroom.kernel.erasure.subject import ErasableLake
from postroom.runtime import Room
from postroom.services.audit import Audit
from postroom.services.authentication import Authentication
from postroom.services.callers import Caller
from postroom.services.calls import Operation, ServiceCall
from postroom.services.claims import Claims
from postroom.services.context import OWN_SCOPES, EraseFiles, ServiceContext
from postroom.services.dead_letters import DeadLetters
from postroom.services.erasure import Erasures
from postroom.services.housekeepers import Housekeepers
from postroom.services.keys import Keys
from postroom.services.lists import AccessLists
from postroom.services.messages import Messages
from postroom.services.patterns import Patterns
from postroom.services.public_ids import PublicIds
from postroom.services.queue_schedules import QueueSchedules
from postroom.services.queues import Queues
from postroom.services.rates import Rates
from postroom.services.reviews import Reviews
from postroom.services.roles import Roles
from postroom.services.rules import Rules
from postroom.services.schemas import Schemas
from postroom.services.scopes import Scopes
from postroom.services.streams import Streams
from postroom.services.subscriptions import Subscriptions
from postroom.services.tenants import Tenants
from postroom.services.trusts import Trusts
from postroom.services.units import Units
from postroom.services.use_cases import UseCases
from postroom.services.webhooks import CheckAddress, Webhooks, refuse_address


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
    """`check_address` tells where webhooks may not lead; `closing` is set when nobody is to wait any more."""

    def __init__(
        self,
        room: Room,
        *,
        clock: Clock | None = None,
        rates: Rates | None = None,
        lake: ErasableLake | None = None,
        check_address: CheckAddress = refuse_address,
        closing: asyncio.Event | None = None,
        own_scopes: frozenset[str] = OWN_SCOPES,
        agent_queues: Callable[[str], Sequence[str]] = lambda agent: (),
        erase_files: EraseFiles = lambda refs: None,
    ) -> None:
        self._context = context = ServiceContext(
            room,
            clock=clock,
            lake=lake,
            closing=closing,
            own_scopes=own_scopes,
            agent_queues=agent_queues,
            erase_files=erase_files,
        )
        self.authentication = Authentication(context, rates)
        self.scopes = Scopes(context)
        self.queues = Queues(context)
        self.messages = Messages(context)
        self.claims = Claims(context)
        self.dead_letters = DeadLetters(context)
        self.subscriptions = Subscriptions(context)
        self.queue_schedules = QueueSchedules(context)
        self.schemas = Schemas(context)
        self.rules = Rules(context)
        self.reviews = Reviews(context)
        self.patterns = Patterns(context)
        self.streams = Streams(context)
        self.keys = Keys(context)
        self.lists = AccessLists(context)
        self.trusts = Trusts(context)
        self.roles = Roles(context)
        self.tenants = Tenants(context)
        self.audit = Audit(context)
        self.erasures = Erasures(context)
        self.webhooks = Webhooks(context, check_address)
        self.housekeepers = Housekeepers(context)
        self.units = Units(context)

    async def public_ids(self) -> PublicIds:
        return await self._context.public_ids()

    def call(self, caller: Caller, operation: Operation) -> ServiceCall:
        """For an entrance that refuses a call itself: the audit shall know of it."""
        return ServiceCall(self._context, caller, operation)

    def find_method(self, request: ServiceRequest) -> Callable[..., Coroutine[Any, Any, Any]]:
        """What another process may ask for: public methods of services, and nothing else."""
        service = getattr(self, request.service, None)
        method = getattr(service, request.method, None) if isinstance(service, UseCases) else None
        if (
            request.service.startswith("_")
            or request.method.startswith("_")
            or not inspect.iscoroutinefunction(method)
        ):
            raise UnknownMethod(service=request.service, method=request.method)
        return method
