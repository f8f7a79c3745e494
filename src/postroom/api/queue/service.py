"""What the service stands on: the room, the clock, the limits, and whose token is the owner's."""

import asyncio
import secrets
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from postroom.api.auth.callers import AuthenticatedCaller as Visitor
from postroom.api.auth.callers import Kind
from postroom.api.queue import callers
from postroom.api.queue.opaque import Opaque
from postroom.api.queue.rates import RateMeter, Rates
from postroom.clock import Clock
from postroom.errors import SlugTaken
from postroom.kernel import commands as c
from postroom.kernel import service_commands
from postroom.kernel.access import keys
from postroom.kernel.erasure.subject import ErasableLake
from postroom.kernel.message_view import MessageViews
from postroom.kernel.model import Scope
from postroom.kernel.ports import Reader
from postroom.runtime import Room
from postroom.runtime.queries import Queries
from postroom.webhooks.addresses import Inside, nowhere

T = TypeVar("T")

SECRETS = "secret"


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
        clock: Clock | None = None,
        rates: Rates | None = None,
        is_owner: Callable[[str], bool] | None = None,
        lake: ErasableLake | None = None,
        inside: Inside = nowhere,
        closing: asyncio.Event | None = None,
        own_scopes: frozenset[str] = frozenset({"office"}),
    ) -> None:
        self.room = room
        self.clock = clock or room._core.clock
        self.rates = rates or Rates()
        self.meter = RateMeter(self.clock)
        self.is_owner = is_owner
        self.lake = lake
        self.inside = inside
        self.closing = closing or asyncio.Event()
        self._own_scopes = own_scopes
        self._opaque: Opaque | None = None
        self._making = asyncio.Lock()

    async def run(self, command: c.Command) -> Any:
        return await self.room.run(command)

    async def ask(self, question: Callable[[Reader], T]) -> T:
        """One snapshot answers everything the question asks."""
        return await self.room.look(question)

    def questions(self, tenant: str) -> Queries:
        return Queries(self.room._core, tenant)

    def is_own(self, scope: Scope) -> bool:
        return scope.slug in self._own_scopes and scope.tenant == self.room._core.options.tenant

    @property
    def directory(self) -> MessageViews:
        return self.room._core.directory

    async def opaque(self) -> Opaque:
        if self._opaque is None:
            async with self._making:
                if self._opaque is None:
                    self._opaque = Opaque(await self._secret("ids"))
        return self._opaque

    async def _secret(self, name: str) -> bytes:
        """A secret of this store, made when it is first needed."""
        found = await self.ask(lambda reader: reader.document(keys.NOBODY, SECRETS, name))
        if found is not None:
            return bytes.fromhex(found.data["hex"])
        data = {"hex": secrets.token_hex(32)}
        try:
            await self.run(
                service_commands.PutServiceDocument(
                    kind=SECRETS, key=name, data=data, tenant=keys.NOBODY, actor="service", new=True
                )
            )
        except SlugTaken:
            # Another process was first.
            return await self._secret(name)
        return bytes.fromhex(data["hex"])

    async def check_key(self, token: str) -> Visitor | None:
        """For the doorkeeper: whose key this is, if it is one and still valid."""
        now = self.clock.now()
        key = await self.ask(lambda reader: callers.find_key(reader, token, now))
        if key is None or not key.alive(now):
            return None
        return Visitor(Kind.KEY, f"api_key:{key.id}", key)


def new_id() -> str:
    return str(uuid.uuid4())
