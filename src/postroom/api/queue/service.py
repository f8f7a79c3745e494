"""What the service stands on: the room, the clock, the limits, and whose token is the owner's."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from postroom.api.queue.gate import nobody
from postroom.clock import Clock
from postroom.kernel import commands as c
from postroom.kernel.erasure.subject import ErasableLake
from postroom.kernel.message_view import MessageViews
from postroom.kernel.model import Scope
from postroom.kernel.ports import Reader
from postroom.runtime import Room
from postroom.runtime.queries import Queries
from postroom.services import Caller, Services
from postroom.services.public_ids import PublicIds
from postroom.services.rates import Rates
from postroom.webhooks.addresses import Inside, nowhere

T = TypeVar("T")


class QueueService:
    """`is_owner` tells the owner's token; where a doorkeeper stands in front, it has told already.

    `inside` tells the networks that webhooks may lead to although they are not public.
    `closing` is set when nobody is to wait any more.
    `own_scopes` of the house's tenant are for the owner, and for keys that are bound to them.
    """

    def __init__(
        self,
        room: Room,
        *,
        services: Services | None = None,
        clock: Clock | None = None,
        rates: Rates | None = None,
        is_owner: Callable[[str], bool] = nobody,
        lake: ErasableLake | None = None,
        inside: Inside = nowhere,
        closing: asyncio.Event | None = None,
        own_scopes: frozenset[str] = frozenset({"office"}),
    ) -> None:
        self.room = room
        self.clock = clock or room.clock
        self.services = services or Services(
            room, clock=self.clock, rates=rates, lake=lake, own_scopes=own_scopes
        )
        self.is_owner = is_owner
        self.lake = lake
        self.inside = inside
        self.closing = closing or asyncio.Event()
        self._own_scopes = own_scopes

    async def run(self, command: c.Command) -> Any:
        return await self.room.run(command)

    async def ask(self, question: Callable[[Reader], T]) -> T:
        """One snapshot answers everything the question asks."""
        return await self.room.look(question)

    def questions(self, tenant: str) -> Queries:
        return Queries(self.room._core, tenant)

    def is_own(self, scope: Scope) -> bool:
        return scope.slug in self._own_scopes and scope.tenant == self.room.tenant

    @property
    def directory(self) -> MessageViews:
        return self.room._core.directory

    async def opaque(self) -> PublicIds:
        return await self.services.public_ids()

    async def check_key(self, token: str) -> Caller | None:
        return await self.services.authentication.find_holder(token)


def new_id() -> str:
    return str(uuid.uuid4())
