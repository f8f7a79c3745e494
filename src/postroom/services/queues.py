"""Queues of a scope: made, read with their depths, changed, paused, drained, archived, deleted."""

from typing import Any

import msgspec

from postroom.clock import SECOND
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import ConsumerMode, Counts, Queue, Scope
from postroom.kernel.states import Change
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service
from postroom.services.scopes import find_state, state_operations
from postroom.services.subscriptions import CountedSubscription

MOST_QUEUES = 500
# What is shown of the last minutes reads no further back.
MOST_EVENTS = 3000


class CountedQueue(msgspec.Struct, frozen=True):
    """A queue with how many messages of each state it holds."""

    queue: Queue
    counts: Counts


class QueuePage(msgspec.Struct, frozen=True):
    items: list[CountedQueue]
    more: bool


class QueueDetails(msgspec.Struct, frozen=True):
    """A queue with who subscribes to it, if it is a broadcast queue."""

    queue: Queue
    counts: Counts
    subscriptions: list[CountedSubscription]


class Queues(Service):
    CREATE = Operation("queue.create", Permission.MANAGE, 201)
    LIST = Operation("queue.list", Permission.VIEW)
    READ = Operation("queue.read", Permission.VIEW)
    UPDATE = Operation("queue.update", Permission.MANAGE)
    DELETE = Operation("queue.delete", Permission.MANAGE, 204)
    CHANGE = state_operations("queue")

    async def create(
        self, caller: Caller, scope: str, slug: str, settings: dict[str, Any], *, exist_ok: bool = False
    ) -> CountedQueue:
        """Make a queue. Slugs that begin with _ belong to the system."""
        async with self._call(caller, self.CREATE) as call:
            found = await call.look(lambda access: access.scope(scope))
            made = await call.commit(
                c.CreateQueue(
                    queue=_path(found, slug),
                    settings=settings,
                    exist_ok=exist_ok,
                    at_most=MOST_QUEUES,
                    **call.who,
                )
            )
            return await self._counted(made)

    async def list_all(self, caller: Caller, scope: str | None = None) -> list[CountedQueue]:
        """The queues this caller can see, system queues too; without a scope, of all its scopes."""
        async with self._call(caller, self.LIST) as call:

            def find(access: Access) -> list[CountedQueue]:
                return [
                    CountedQueue(queue, access.reader.counts(queue.id))
                    for each in access.scopes(scope)
                    for queue in access.list_queues(each)
                ]

            return await call.look(find, quick=False)

    async def search(
        self, caller: Caller, scope: str | None = None, words: str = "", *, start: int = 0, limit: int = 100
    ) -> QueuePage:
        """Queues whose path has all these words, by path; only those that are returned are counted."""
        async with self._call(caller, self.LIST) as call:

            def find(access: Access) -> QueuePage:
                wanted = words.casefold().split()
                found = sorted(
                    (
                        queue
                        for each in access.scopes(scope)
                        for queue in access.list_queues(each)
                        if all(word in queue.path.casefold() for word in wanted)
                    ),
                    key=lambda queue: (queue.system, queue.path),
                )
                shown = found[start : start + limit]
                counts = access.reader.counts_of((queue.id, 0) for queue in shown)
                items = [CountedQueue(queue, counts[queue.id, 0]) for queue in shown]
                return QueuePage(items, len(found) > start + limit)

            return await call.look(find, quick=False)

    async def activity(
        self, caller: Caller, *, buckets: int = 30, bucket_s: float = 60.0
    ) -> dict[str, list[int]]:
        """How many messages were published lately, by queue, the newest bucket last. For the owner."""
        async with self._call(caller, self.LIST) as call:

            def count(access: Access) -> dict[str, list[int]]:
                access.require_owner()
                size, now = int(bucket_s * SECOND), self._now()
                begin = now - buckets * size
                found: dict[str, list[int]] = {}
                head = access.reader.head().seq
                for event in access.reader.events(max(0, head - MOST_EVENTS), MOST_EVENTS):
                    if event.type == Change.PUBLISHED and event.time >= begin:
                        lane = found.setdefault(f"{event.scope}/{event.queue}", [0] * buckets)
                        lane[min(buckets - 1, (event.time - begin) // size)] += 1
                return found

            return await call.look(count, quick=False)

    async def read(self, caller: Caller, scope: str, queue: str) -> QueueDetails:
        async with self._call(caller, self.READ) as call:

            def find(access: Access) -> QueueDetails:
                found, reader = access.queue(scope, queue), access.reader
                subscriptions = []
                if found.settings.consumer_mode is ConsumerMode.BROADCAST:
                    subscriptions = [
                        CountedSubscription(each, reader.counts(found.id, each.id))
                        for each in reader.subscriptions(found.id)
                    ]
                return QueueDetails(found, reader.counts(found.id), subscriptions)

            return await call.look(find)

    async def update(self, caller: Caller, scope: str, queue: str, settings: dict[str, Any]) -> CountedQueue:
        """Change settings; a new ordering gives every waiting message its new place."""
        async with self._call(caller, self.UPDATE) as call:
            found = await call.look(lambda access: access.queue(scope, queue))
            return await self._counted(
                await call.commit(c.UpdateQueue(queue=found.path, settings=settings, **call.who))
            )

    async def set_state(self, caller: Caller, scope: str, queue: str, verb: str) -> CountedQueue:
        state = find_state(verb)
        async with self._call(caller, self.CHANGE[verb]) as call:
            found = await call.look(lambda access: access.queue(scope, queue))
            return await self._counted(
                await call.commit(c.SetQueueState(queue=found.path, state=state, **call.who))
            )

    async def delete(self, caller: Caller, scope: str, queue: str) -> Queue:
        """Only when no open messages are left in it. Returns what it was."""
        async with self._call(caller, self.DELETE) as call:
            found = await call.look(lambda access: access.queue(scope, queue))
            await call.commit(c.DeleteQueue(queue=found.path, **call.who))
            return found

    async def _counted(self, queue: Queue) -> CountedQueue:
        room = self._context.room
        return CountedQueue(queue, await room.look(lambda reader: reader.counts(queue.id), quick=True))


def _path(scope: Scope, slug: str) -> str:
    """As its owner would write it: without the default scope, where that is plain."""
    is_plain = scope.slug == checks.DEFAULT_SCOPE and isinstance(slug, str) and "/" not in slug
    return slug if is_plain else f"{scope.slug}/{slug}"
