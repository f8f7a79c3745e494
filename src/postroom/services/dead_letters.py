"""Dead letters: sent back to the queues they came from, or given up for good."""

from postroom.kernel import commands as c
from postroom.kernel.access.permissions import Permission
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation
from postroom.services.messages import FoundMessage, MessageService

AT_ONCE = 1000


class DeadLetters(MessageService):
    REPLAY = Operation("message.replay", Permission.MANAGE)
    DISCARD = Operation("message.discard", Permission.MANAGE)
    REPLAY_ALL = Operation("dead_letters.replay", Permission.MANAGE)
    DISCARD_ALL = Operation("dead_letters.discard", Permission.MANAGE)

    async def replay(self, caller: Caller, *message_ids: str, scope: str | None = None) -> list[FoundMessage]:
        """Back to where they came from with a clean slate of attempts, all of them or none."""
        return await self._each(caller, self.REPLAY, c.Replay, message_ids, scope)

    async def discard(
        self, caller: Caller, *message_ids: str, scope: str | None = None
    ) -> list[FoundMessage]:
        """Given up for good, all of them or none."""
        return await self._each(caller, self.DISCARD, c.Discard, message_ids, scope)

    async def replay_all(self, caller: Caller, scope: str, limit: int = AT_ONCE) -> list[str]:
        """Those of a scope that the caller may manage, up to a limit; the ids of what was sent back."""
        return await self._all(caller, self.REPLAY_ALL, c.Replay, scope, limit)

    async def discard_all(self, caller: Caller, scope: str, limit: int = AT_ONCE) -> list[str]:
        return await self._all(caller, self.DISCARD_ALL, c.Discard, scope, limit)

    async def _each(
        self,
        caller: Caller,
        operation: Operation,
        command: type[c.Replay] | type[c.Discard],
        message_ids: tuple[str, ...],
        scope: str | None,
    ) -> list[FoundMessage]:
        async with self._call(caller, operation) as call:
            await call.look(lambda access: [access.message(scope, each) for each in message_ids])
            await call.commit(command(message_ids=message_ids, **call.who))
            return await self._read(*dict.fromkeys(message_ids))

    async def _all(
        self,
        caller: Caller,
        operation: Operation,
        command: type[c.Replay] | type[c.Discard],
        scope: str,
        limit: int,
    ) -> list[str]:
        async with self._call(caller, operation) as call:

            def find(access: Access) -> tuple[str, tuple[int, ...] | None]:
                place = access.scope(scope)
                return place.slug, access.queue_ids(place, Permission.MANAGE)

            slug, origins = await call.look(find)
            return await call.commit(command(scope=slug, limit=limit, origins=origins, **call.who))
