"""Subscribers of broadcast queues, each with its own progress, and their memory of what they have seen."""

import msgspec

from postroom.errors import InvalidField
from postroom.kernel import commands as c
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import Counts, Subscription
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service
from postroom.services.errors import NoSuchThing


class CountedSubscription(msgspec.Struct, frozen=True):
    """A subscription with its progress."""

    subscription: Subscription
    counts: Counts


class Subscriptions(Service):
    CREATE = Operation("subscription.create", Permission.CONSUME, 201)
    LIST = Operation("subscription.list", Permission.VIEW)
    READ = Operation("subscription.read", Permission.VIEW)
    DELETE = Operation("subscription.delete", Permission.CONSUME, 204)
    DEDUP = Operation("subscription.dedup", Permission.CONSUME)

    async def subscribe(
        self,
        caller: Caller,
        scope: str,
        queue: str,
        name: str,
        *,
        earliest: bool = False,
        exist_ok: bool = False,
    ) -> CountedSubscription:
        """Subscribe to a broadcast queue, from now on or from the earliest message that is kept."""
        async with self._call(caller, self.CREATE) as call:
            found = await call.look(lambda access: access.queue(scope, queue))
            made: Subscription = await call.commit(
                c.Subscribe(queue=found.path, name=name, earliest=earliest, exist_ok=exist_ok, **call.who)
            )
            counts = await self._context.room.look(
                lambda reader: reader.counts(made.queue_id, made.id), quick=True
            )
            return CountedSubscription(made, counts)

    async def list_all(self, caller: Caller, scope: str) -> list[CountedSubscription]:
        """Subscribers of the queues this caller can see."""
        async with self._call(caller, self.LIST) as call:
            return await call.look(lambda access: _all(access, scope), quick=False)

    async def read(self, caller: Caller, scope: str, subscription_id: str) -> CountedSubscription:
        async with self._call(caller, self.READ) as call:
            return await call.look(lambda access: _find(access, scope, subscription_id), quick=False)

    async def unsubscribe(
        self, caller: Caller, scope: str, subscription: str, *, queue: str | None = None
    ) -> Subscription:
        """By its id; or by its name and its queue. What the subscriber had not finished is cancelled; what it
        holds must be settled first."""
        async with self._call(caller, self.DELETE) as call:

            def find(access: Access) -> tuple[str, str]:
                if queue is not None:
                    return access.queue(scope, queue).path, subscription
                found = _find(access, scope, subscription).subscription
                return found.queue, found.name

            path, name = await call.look(find, quick=False)
            await call.commit(c.Unsubscribe(queue=path, name=name, **call.who))
            return Subscription(id=0, queue_id=0, queue=path, name=name, created_at=0)

    async def check_seen(self, caller: Caller, scope: str, subscription_id: str, key: str | None) -> bool:
        """Whether this subscriber has seen a message id (or any text) before; remembered for a day."""
        async with self._call(caller, self.DEDUP) as call:
            found = await call.look(lambda access: _find(access, scope, subscription_id), quick=False)
            if not key:
                raise InvalidField("message_id", "is needed, or a key")
            of = found.subscription
            return await call.commit(c.CheckSeen(queue=of.queue, name=of.name, key=key, **call.who))


def _all(access: Access, scope: str) -> list[CountedSubscription]:
    place = access.scope(scope)
    return [
        CountedSubscription(each, access.reader.counts(queue.id, each.id))
        for queue in access.list_queues(place, access.wanted)
        for each in access.reader.subscriptions(queue.id)
    ]


def _find(access: Access, scope: str, subscription_id: str) -> CountedSubscription:
    found = {each.subscription.id: each for each in _all(access, scope)}
    number = access.find_number("subscription", subscription_id, found)
    if number is None:
        raise NoSuchThing(what="subscription", id=subscription_id)
    return found[number]
