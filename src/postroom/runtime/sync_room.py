"""The synchronous room: the same verbs for threads. A caller who is alone commits on its own thread."""

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, TypeVar, Unpack, overload

from postroom.clock import Clock
from postroom.errors import PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import Budget
from postroom.kernel.ledger import Event, Head
from postroom.kernel.limits import Limits
from postroom.kernel.model import (
    Counts,
    Document,
    Message,
    NewMessage,
    Position,
    Queue,
    Receipt,
    Record,
    Schema,
    Scope,
    Subscription,
)
from postroom.kernel.reader import Reader
from postroom.kernel.rows import Stored
from postroom.kernel.schedules.model import QueueSchedule
from postroom.kernel.transitions.claim import ClaimedBatch
from postroom.runtime.command_builder import CommandBuilder, Moment, PublishOptions, place_state
from postroom.runtime.core import RoomCore, RoomOptions
from postroom.runtime.ledger_reader import EVENTS_AT_ONCE
from postroom.runtime.options import FilterOptions, OpenOptions, QueueOptions, ScheduleOptions, check_names
from postroom.runtime.queries import PAGE, HousekeeperStatus, Page, Queries
from postroom.runtime.thread_workers import ThreadWorkers
from postroom.runtime.typed_queue import SyncTypedQueue
from postroom.runtime.unit import SyncUnit
from postroom.runtime.workers import Handler, WorkerOptions

T = TypeVar("T")


class SyncRoom:
    """A post room, open for use from threads. Make one with `with postroom.open_sync(url) as room`.

    >>> import postroom
    >>> with postroom.open_sync("memory://") as shop:
    ...     _ = shop.create_queue("orders")
    ...     print(shop.publish("orders", {"total": 12}).created)
    True
    """

    def __init__(self, core: RoomCore) -> None:
        self._core = core
        self._builder = CommandBuilder(core.actor, core.options.tenant)
        self._queries = Queries(core)
        self._workers = ThreadWorkers(self)
        self._closed = False

    @property
    def actor(self) -> str:
        """Who this room acts as; every event of the ledger names its actor.

        >>> room.actor
        'shop'
        """
        return self._builder.actor

    @property
    def tenant(self) -> str:
        """Whose room it is when nobody says otherwise.

        >>> room.tenant
        'default'
        """
        return self._builder.tenant

    @property
    def clock(self) -> Clock:
        """The clock that all times of this room come from.

        >>> room.clock.now() > 0
        True
        """
        return self._core.clock

    @property
    def limits(self) -> Limits:
        """How large what is accepted may be.

        >>> room.limits.body_bytes > 0
        True
        """
        return self._core.options.limits

    def to_message(self, stored: Stored, *, with_token: bool = False) -> Message:
        """A row as users see it.

        >>> id = room.publish("orders", 1).id
        >>> room.to_message(room.look(lambda reader: reader.get(id))).body
        1
        """
        return self._core.directory.message(stored, with_token=with_token)

    def run(self, command: c.Command) -> Any:
        """Carry out any command of the kernel; returns when its outcome is durable.

        >>> from postroom.kernel import commands
        >>> room.run(commands.CreateQueue(queue="jobs", settings={}, actor="me", tenant="default")).path
        'default/jobs'
        """
        return self._core.committer.execute(command)

    # messages

    def publish(self, queue: str, body: Any = None, **options: Unpack[PublishOptions]) -> Receipt:
        """Put a message into a queue. When this returns, it survives a crash and a power cut.

        >>> room.publish("orders", {"total": 12}, key="order-1", priority="high").created
        True
        >>> room.publish("orders", {"total": 12}, key="order-1", priority="high").created  # the same again
        False
        """
        return self.run(self._builder.publish(queue, body, options))[0]

    def publish_many(
        self, queue: str, bodies: Iterable[Any | NewMessage], **options: Unpack[PublishOptions]
    ) -> list[Receipt]:
        """Put many messages into a queue, all or none. Items may be bodies or whole `NewMessage`s.

        >>> len(room.publish_many("orders", [{"total": 1}, {"total": 2}]))
        2
        """
        return self.run(self._builder.publish_many(queue, bodies, **options))

    def claim(
        self,
        *queues: str,
        limit: int | None = 1,
        wait: float = 0,
        lease: float | None = None,
        subscription: str | None = None,
        worker: str | None = None,
        labels: dict[str, Any] | None = None,
        ids: Sequence[str] = (),
    ) -> list[Message]:
        """Take up to `limit` messages (None: all that wait), waiting up to `wait` seconds for the first.

        With `labels`, only messages that carry all of them; with `ids`, only these.

        >>> _ = room.publish("orders", {"total": 12})
        >>> [message] = room.claim("orders", wait=20)
        >>> message.body
        {'total': 12}
        """
        command = self._builder.claim(queues, limit, lease, subscription, worker, labels, ids)
        return self._claim_until(command, wait)

    def _claim_until(
        self, command: c.Claim, wait: float, enough: threading.Event | None = None
    ) -> list[Message]:
        """For workers: nobody waits any longer once `enough` is set and `_wake` was called."""
        taken: ClaimedBatch = self.run(command)
        if not taken.messages and wait > 0:
            taken = self._wait_and_claim(command, wait, enough)
        return [self._core.directory.message(stored, with_token=True) for stored in taken.messages]

    def take(self, command: c.Claim, wait: float = 0) -> list[Stored]:
        """Carry out a claim as it stands, of whatever tenant, waiting like `claim`.

        >>> from postroom.kernel import commands
        >>> _ = room.publish("orders", 1)
        >>> claim = commands.Claim(queues=("orders",), limit=1, worker="me", actor="me", tenant="default")
        >>> [stored] = room.take(claim)
        >>> stored.row.attempts
        1
        """
        taken: ClaimedBatch = self.run(command)
        if not taken.messages and wait > 0:
            taken = self._wait_and_claim(command, wait)
        return taken.messages

    def may_delete(self) -> bool:
        """Not right after the clock jumped ahead: it may be wrong, and what is gone does not come back.

        >>> room.may_delete()
        True
        """
        watch = self._core.clock_watch
        return watch is None or watch.may_delete()

    def look(self, question: Callable[[Reader], T], *, quick: bool = False) -> T:
        """Ask the store anything; all of one question is answered from one snapshot. Here all are `quick`.

        >>> room.look(lambda reader: reader.queue("default", "default", "orders").path)
        'default/orders'
        """
        return self._core.read(question)

    def _wake(self) -> None:
        """Let everybody who waits look again."""
        self._core.wakeups.wake_all()

    def _wait_and_claim(
        self, command: c.Claim, wait: float, enough: threading.Event | None = None
    ) -> ClaimedBatch:
        until = time.monotonic() + wait
        news = threading.Event()
        lines = Queries(self._core, command.tenant).lines(command.queues, command.subscription)
        with self._core.wakeups.waiting(lines, news.set, is_choosy=bool(command.labels)) as waiter:
            while True:
                news.clear()
                self._core.wakeups.rearm(waiter)
                taken: ClaimedBatch = self.run(command)
                left = until - time.monotonic()
                if taken.messages or left <= 0 or (enough is not None and enough.is_set()):
                    return taken
                news.wait(self._core.nap(taken.next_due, left))

    def complete(self, claimed: Message, result: Any = None) -> None:
        """The work is done; `result` is kept with the message.

        >>> _ = room.publish("orders", {"total": 12})
        >>> [message] = room.claim("orders")
        >>> room.complete(message, {"paid": True})
        >>> room.get(message.id).result
        {'paid': True}
        """
        self.run(self._builder.complete(claimed, result))

    def complete_many(self, done: Iterable[tuple[Message, Any]]) -> list[PostroomError | None]:
        """Messages with their results, with one commit. One that is refused keeps no other from being
        completed: the errors are in the places of their messages.

        >>> _ = room.publish_many("orders", [{"total": 12}, {"total": 7}])
        >>> room.complete_many([(message, None) for message in room.claim("orders", limit=2)])
        [None, None]
        """
        outcomes = self.run(self._builder.complete_many(done))
        return [each if isinstance(each, PostroomError) else None for each in outcomes]

    def fail(
        self,
        claimed: Message,
        reason: str,
        *,
        kind: str | None = None,
        retry: bool = True,
        delay: float | None = None,
    ) -> None:
        """It did not work: again after a pause, or (`retry=False`, or no attempts left) a dead letter.

        >>> _ = room.publish("orders", {"total": 12})
        >>> [message] = room.claim("orders")
        >>> room.fail(message, "the bank did not answer", delay=60)
        >>> room.get(message.id).state
        <State.DELAYED: 'delayed'>
        """
        self.run(self._builder.fail(claimed, reason, kind, retry, delay))

    def release(self, claimed: Message) -> None:
        """Give it back untouched; the attempt does not count.

        >>> _ = room.publish("orders", {"total": 12})
        >>> [message] = room.claim("orders")
        >>> room.release(message)
        >>> room.get(message.id).attempts
        0
        """
        self.run(c.Release(**self._builder.held(claimed)))

    def extend(self, claimed: Message, lease: float | None = None) -> int:
        """Keep the claim for another lease from now; returns its new end.

        >>> _ = room.publish("orders", {"total": 12})
        >>> [message] = room.claim("orders")
        >>> room.extend(message, 300) > message.claim_expires_at
        True
        """
        return self.run(c.Extend(lease_s=lease, **self._builder.held(claimed)))

    def snooze(
        self,
        claimed: Message,
        seconds: float | None = None,
        *,
        until: Moment | None = None,
        reason: str | None = None,
    ) -> None:
        """Later, without counting an attempt.

        >>> _ = room.publish("orders", {"total": 12})
        >>> [message] = room.claim("orders")
        >>> room.snooze(message, 3600, reason="the shop is closed")
        >>> room.get(message.id).attempts
        0
        """
        self.run(self._builder.snooze(claimed, seconds, until, reason))

    def cancel(self, message_id: str, reason: str = "cancelled") -> None:
        """End an open message: nobody will be given it.

        >>> id = room.publish("orders", {"total": 12}).id
        >>> room.cancel(id, "ordered twice")
        >>> room.get(id).state
        <State.CANCELLED: 'cancelled'>
        """
        self.run(c.Cancel(message_id=message_id, reason=reason, **self._who()))

    def kill(self, message_id: str, reason: str) -> None:
        """End an open message as a dead letter.

        >>> id = room.publish("orders", {"total": 12}).id
        >>> room.kill(id, "not an order")
        >>> room.get(id).path
        'default/_dead_letter'
        """
        self.run(c.Kill(message_id=message_id, reason=reason, **self._who()))

    def reprioritise(self, message_id: str, *, tier: str | None = None, score: int | None = None) -> None:
        """Give an open message another tier or score.

        >>> _ = room.create_queue("urgent", ordering="priority")
        >>> id = room.publish("urgent", 1).id
        >>> room.reprioritise(id, tier="critical")
        >>> room.get(id).priority_tier
        <Tier.CRITICAL: 'critical'>
        """
        self.run(c.Reprioritise(message_id=message_id, tier=tier, score=score, **self._who()))

    def replay(self, *message_ids: str, scope: str | None = None, limit: int = 1000) -> list[str]:
        """Dead letters back to where they came from: these, or up to `limit` of a scope.

        >>> id = room.publish("orders", {"total": 12}).id
        >>> room.kill(id, "the bank was down")
        >>> room.replay(id) == [id]
        True
        """
        return self.run(c.Replay(message_ids=message_ids, scope=scope, limit=limit, **self._who()))

    def discard(self, *message_ids: str, scope: str | None = None, limit: int = 1000) -> list[str]:
        """Give dead letters up for good: these, or up to `limit` of a scope.

        >>> id = room.publish("orders", {"total": 12}).id
        >>> room.kill(id, "not an order")
        >>> room.discard(scope="default") == [id]
        True
        """
        return self.run(c.Discard(message_ids=message_ids, scope=scope, limit=limit, **self._who()))

    def unit(self) -> SyncUnit:
        """`with room.unit() as unit:` gathers verbs that commit together when the block ends well.

        >>> _ = room.create_queue("shipments")
        >>> _ = room.publish("orders", {"total": 12})
        >>> [message] = room.claim("orders")
        >>> with room.unit() as unit:
        ...     unit.complete(message)
        ...     unit.publish("shipments", {"order": message.id}, caused_by=message)
        >>> room.counts("orders").completed, room.counts("shipments").pending
        (1, 1)
        """
        return SyncUnit(self._builder, self.run)

    # reading

    def get(self, message_id: str) -> Message:
        """A message by its id, live or archived.

        >>> id = room.publish("orders", {"total": 12}).id
        >>> room.get(id).body
        {'total': 12}
        """
        return self._queries.get(message_id)

    def messages(
        self, *, cursor: str | None = None, limit: int = PAGE, **wanted: Unpack[FilterOptions]
    ) -> Page:
        """A page of messages, live and archived; filters are those of `FilterOptions`.

        >>> _ = room.publish_many("orders", [1, 2, 3])
        >>> page = room.messages(queue="orders", state="pending", limit=2)
        >>> [message.body for message in page]
        [1, 2]
        >>> [message.body for message in room.messages(queue="orders", cursor=page.next_cursor)]
        [3]
        """
        return self._queries.page(self._queries.filter(**wanted), cursor, limit)

    def numbered(
        self, *, after: int | None = None, limit: int = PAGE, **wanted: Unpack[FilterOptions]
    ) -> list[tuple[int, Message]]:
        """Messages with their numbers, after (newest first: before) a number.

        >>> _ = room.publish_many("orders", [1, 2])
        >>> [message.body for number, message in room.numbered(queue="orders")]
        [1, 2]
        """
        return self._queries.numbered(self._queries.filter(**wanted), after, limit)

    def scope_counts(self, scope: str) -> dict[str, Counts]:
        """The counts of every queue of a scope, all from one moment.

        >>> room.scope_counts("default")["orders"].open
        0
        """
        return self._queries.scope_counts(scope)

    def peek(self, queue: str, limit: int = 10, *, subscription: str | None = None) -> list[Message]:
        """What would be claimed next, without claiming it.

        >>> _ = room.publish("orders", {"total": 12})
        >>> [message.body for message in room.peek("orders")]
        [{'total': 12}]
        """
        return self._queries.peek(queue, limit, subscription)

    def counts(self, queue: str, *, subscription: str | None = None) -> Counts:
        """How many messages of a queue are in each state.

        >>> _ = room.publish_many("orders", [1, 2])
        >>> room.counts("orders").pending
        2
        """
        return self._queries.counts(queue, subscription)

    # scopes and queues

    def create_scope(
        self, slug: str, *, display_name: str = "", description: str = "", exist_ok: bool = False
    ) -> Scope:
        """Make a scope, which has its own queues, dead letters and keys.

        >>> room.create_scope("shop", display_name="The shop").slug
        'shop'
        """
        return self.run(
            c.CreateScope(
                slug=slug,
                display_name=display_name,
                description=description,
                exist_ok=exist_ok,
                **self._who(),
            )
        )

    def set_scope_state(self, slug: str, state: str) -> Scope:
        """Pause, drain, archive or open (`active`) a scope with all its queues.

        >>> room.set_scope_state("default", "paused").state
        <LifecycleState.PAUSED: 'paused'>
        """
        return self.run(c.SetScopeState(slug=slug, state=place_state(state), **self._who()))

    def delete_scope(self, slug: str) -> None:
        """Remove a scope that has no open messages and no dead letters.

        >>> _ = room.create_scope("shop")
        >>> room.delete_scope("shop")
        """
        self.run(c.DeleteScope(slug=slug, **self._who()))

    def create_queue(self, queue: str, *, exist_ok: bool = False, **settings: Unpack[QueueOptions]) -> Queue:
        """Make a queue; settings are the fields of `QueueSettings`.

        >>> room.create_queue("jobs", ordering="priority", max_retries=3).path
        'default/jobs'
        """
        return self.run(c.CreateQueue(queue=queue, settings=dict(settings), exist_ok=exist_ok, **self._who()))

    def update_queue(self, queue: str, **settings: Unpack[QueueOptions]) -> Queue:
        """Change settings of a queue; those not named stay.

        >>> room.update_queue("orders", max_retries=10).settings.max_retries
        10
        """
        return self.run(c.UpdateQueue(queue=queue, settings=dict(settings), **self._who()))

    def set_queue_state(self, queue: str, state: str) -> Queue:
        """Pause, drain, archive or open (`active`) a queue.

        >>> room.set_queue_state("orders", "paused").state
        <LifecycleState.PAUSED: 'paused'>
        """
        return self.run(c.SetQueueState(queue=queue, state=place_state(state), **self._who()))

    def delete_queue(self, queue: str) -> None:
        """Remove a queue that has no open messages.

        >>> room.delete_queue("orders")
        """
        self.run(c.DeleteQueue(queue=queue, **self._who()))

    def scope(self, slug: str) -> Scope:
        """A scope by its name.

        >>> room.scope("default").state
        <LifecycleState.ACTIVE: 'active'>
        """
        return self._queries.scope(slug)

    def scopes(self) -> list[Scope]:
        """All scopes.

        >>> [scope.slug for scope in room.scopes()]
        ['default']
        """
        return self._queries.scopes()

    @overload
    def queue(self, queue: str) -> Queue: ...
    @overload
    def queue(self, queue: str, body_type: type[T]) -> SyncTypedQueue[T]: ...
    def queue(self, queue: str, body_type: type[T] | None = None) -> Queue | SyncTypedQueue[T]:
        """A queue and its settings; with a type, the queue of bodies of that type.

        >>> room.queue("orders").settings.max_retries
        5
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class Order:
        ...     total: int
        >>> orders = room.queue("orders", Order)
        >>> orders.publish(Order(total="many"))
        Traceback (most recent call last):
        postroom.errors.InvalidField: body: is not Order: Expected `int`, got `str` - at `$.total`.
        """
        return self._queries.queue(queue) if body_type is None else SyncTypedQueue(self, queue, body_type)

    def queues(self, scope: str | None = None) -> list[Queue]:
        """The queues of a scope, or all; those of the system too.

        >>> [queue.path for queue in room.queues("default") if not queue.system]
        ['default/orders']
        """
        return self._queries.queues(scope)

    # schedules

    def schedule(
        self, name: str, queue: str, body: Any = None, **options: Unpack[ScheduleOptions]
    ) -> QueueSchedule:
        """Publish to a queue at times: by `cron` in a `zone`, every so many seconds, or once `at` a moment.

        The same name again changes it whole. While what it published is open, its times are passed over,
        unless `overlap`. `missed` is for times that nobody was there for: `skip`, `once` or `all`.

        >>> nightly = room.schedule("nightly", "orders", "report", cron="0 3 * * *", zone="Europe/Berlin")
        >>> nightly.missed.value, nightly.next_at > room.clock.now()
        ('once', True)
        >>> room.schedule("poll", "orders", every_s=60, overlap=True).every_s
        60.0
        """
        return self.run(self._builder.schedule(name, queue, body, options))

    def schedules(self, scope: str | None = None) -> list[QueueSchedule]:
        """Schedules of queues, of a scope or all, with when each comes next and what it published last.

        >>> _ = room.schedule("poll", "orders", every_s=60)
        >>> [(schedule.path, schedule.queue) for schedule in room.schedules()]
        [('default/poll', 'default/orders')]
        """
        return self._queries.schedules(scope)

    def unschedule(self, name: str) -> None:
        """Remove a schedule; what it has published stays.

        >>> _ = room.schedule("poll", "orders", every_s=60)
        >>> room.unschedule("poll")
        >>> room.schedules()
        []
        """
        self.run(c.DropSchedule(name=name, **self._who()))

    def run_schedule(self, name: str) -> Receipt:
        """Publish what a schedule would, now, besides its times.

        >>> _ = room.schedule("poll", "orders", "look", every_s=60)
        >>> room.get(room.run_schedule("poll").id).metadata
        {'schedule': 'default/poll'}
        """
        return self.run(c.RunSchedule(name=name, **self._who()))

    # subscriptions, schemas, records

    def subscribe(self, queue: str, name: str, *, earliest: bool = False) -> Subscription:
        """Give a broadcast queue another reader, from now on or (`earliest`) from what is kept.

        >>> _ = room.create_queue("news", consumer_mode="broadcast")
        >>> _ = room.subscribe("news", "ann")
        >>> _ = room.publish("news", "hello")
        >>> [message.body for message in room.claim("news", subscription="ann")]
        ['hello']
        """
        return self.run(c.Subscribe(queue=queue, name=name, earliest=earliest, **self._who()))

    def unsubscribe(self, queue: str, name: str) -> None:
        """Take a reader away, with what waits for it.

        >>> _ = room.create_queue("news", consumer_mode="broadcast")
        >>> _ = room.subscribe("news", "ann")
        >>> room.unsubscribe("news", "ann")
        """
        self.run(c.Unsubscribe(queue=queue, name=name, **self._who()))

    def subscriptions(self, queue: str) -> list[Subscription]:
        """The readers of a broadcast queue.

        >>> _ = room.create_queue("news", consumer_mode="broadcast")
        >>> room.subscribe("news", "ann").name
        'ann'
        >>> [reader.name for reader in room.subscriptions("news")]
        ['ann']
        """
        return self._queries.subscriptions(queue)

    def check_seen(self, queue: str, subscription: str, key: str) -> bool:
        """Whether this subscriber has seen this key; it is remembered for a day.

        >>> _ = room.create_queue("news", consumer_mode="broadcast")
        >>> _ = room.subscribe("news", "ann")
        >>> room.check_seen("news", "ann", "order-1"), room.check_seen("news", "ann", "order-1")
        (False, True)
        """
        return self.run(c.CheckSeen(queue=queue, name=subscription, key=key, **self._who()))

    def register_schema(
        self, scope: str, name: str, document: dict[str, Any], *, version: int | None = None
    ) -> Schema:
        """Publish a version of a JSON Schema that bodies of queues must match.

        >>> room.register_schema("default", "order", {"type": "object", "required": ["total"]}).version
        1
        >>> room.update_queue("orders", schema="order").settings.schema
        'order'
        """
        return self.run(
            c.RegisterSchema(scope=scope, name=name, document=document, version=version, **self._who())
        )

    def schemas(self, scope: str) -> list[Schema]:
        """The schemas of a scope.

        >>> _ = room.register_schema("default", "order", {"type": "object"})
        >>> [schema.name for schema in room.schemas("default")]
        ['order']
        """
        return self._queries.schemas(scope)

    def record(self, kind: str, key: str, data: dict[str, Any], *, about: Message | None = None) -> None:
        """Keep a fact (a cost, a measurement) beside the messages.

        >>> room.record("cost", "bank", {"cents": 3})
        >>> room.latest_record("cost", "bank").data
        {'cents': 3}
        """
        self.run(self._builder.record(kind, key, data, about))

    def records(
        self, kind: str, key: str | None = None, *, after: int = 0, limit: int = PAGE
    ) -> list[Record]:
        """Facts of a kind, oldest first, after a number.

        >>> room.record("cost", "bank", {"cents": 3})
        >>> [record.data for record in room.records("cost")]
        [{'cents': 3}]
        """
        return self._queries.records(kind, key, after, limit)

    def latest_record(self, kind: str, key: str) -> Record | None:
        """The newest fact of a kind under a key.

        >>> room.latest_record("cost", "bank") is None
        True
        """
        return self._queries.latest_record(kind, key)

    def accounts(self, *names: str) -> dict[str, Budget]:
        """What is spent and reserved of each; an account nobody has used yet is empty.

        >>> room.accounts("agent/writer")["agent/writer"].spent
        0
        """
        return self._queries.accounts(names)

    def list_accounts(
        self, prefix: str = "", *, frozen: bool = False, after: str = "", limit: int = PAGE
    ) -> list[Budget]:
        """Accounts whose names begin so, by name; with `frozen`, only those that are frozen.

        >>> room.list_accounts("agent/")
        []
        """
        return self._queries.list_accounts(prefix, frozen, after, limit)

    def record_numbered(self, number: int) -> Record | None:
        """The record that an event of the ledger tells of.

        >>> room.record("cost", "bank", {"cents": 3})
        >>> room.record_numbered(room.latest_record("cost", "bank").id).data
        {'cents': 3}
        """
        return self._queries.record_numbered(number)

    def document(self, kind: str, key: str) -> Document | None:
        """A document (a schedule, a task) by kind and key, or None.

        >>> room.document("schedule", "nightly") is None
        True
        """
        return self._queries.document(kind, key)

    def documents(self, kind: str, *, prefix: str = "", after: str = "", limit: int = PAGE) -> list[Document]:
        """Documents of a kind by key, after a key; `prefix` is how their keys begin.

        >>> room.documents("schedule")
        []
        """
        return self._queries.documents(kind, prefix, after, limit)

    def document_changes(self, kind: str) -> int:
        """How often documents of a kind were changed, ever; to know cheaply whether to read them again.

        >>> room.document_changes("schedule")
        0
        """
        return self._queries.document_changes(kind)

    # the ledger

    def events(self, after: int = 0, *, follow: bool = False) -> Iterator[Event]:
        """Every event after a position, in order; with `follow`, also those to come, as they come.

        >>> _ = room.publish("orders", {"total": 12})
        >>> [event.type for event in room.events()][-1]
        'message.published'
        """
        with contextlib.closing(self.event_pages(after, follow=follow)) as pages:
            for events in pages:
                yield from events

    def event_pages(self, after: int = 0, *, follow: bool = False) -> Generator[list[Event], None, None]:
        """The same, as many at once as are there; for readers that take their time between.

        >>> [len(page) > 0 for page in room.event_pages()]
        [True]
        """
        news = threading.Event()
        self._core.wakeups.follow(news.set)
        try:
            while True:
                news.clear()
                events = self._queries.events(after, EVENTS_AT_ONCE)
                if events:
                    yield events
                    after = events[-1].seq
                if len(events) == EVENTS_AT_ONCE:
                    continue
                if not follow or self._closed:
                    return
                news.wait(self._core.nap())
        finally:
            self._core.wakeups.unfollow(news.set)

    def read_events(self, after: int, limit: int) -> list[Event]:
        """The next events after a position, those that are there now.

        >>> [event.seq for event in room.read_events(0, 2)]
        [1, 2]
        """
        return self._queries.events(after, limit)

    def head(self) -> Head:
        """The last event of the ledger and its hash.

        >>> room.head().seq > 0
        True
        """
        return self._queries.head()

    def set_position(self, name: str, seq: int, *, hold: bool = False) -> None:
        """Remember how far a reader of the ledger has come; `hold` keeps the pruner behind it.

        >>> room.set_position("report", 2)
        """
        self.run(c.SetPosition(name=name, seq=seq, hold=hold, **self._who()))

    def positions(self) -> list[Position]:
        """How far each named reader of the ledger has come.

        >>> room.set_position("report", 2)
        >>> [(reader.name, reader.seq) for reader in room.positions()]
        [('report', 2)]
        """
        return self._queries.positions()

    def housekeepers(self) -> list[HousekeeperStatus]:
        """What keeps the room in order, and when each last ran.

        >>> "pruner" in [keeper.name for keeper in room.housekeepers()]
        True
        """
        return self._queries.housekeepers()

    def housekeep(self, name: str) -> int:
        """Run one housekeeper now; how many items it handled.

        >>> room.housekeep("pruner")
        0
        """
        return self._core.housekeep(name)

    # workers

    def worker(self, queue: str, **options: Unpack[WorkerOptions]) -> Callable[[Handler], Handler]:
        """Decorate a function that handles messages of a queue; `run_workers` calls it in threads.

        >>> @room.worker("orders", concurrency=4, lease=60)
        ... def pay(message):
        ...     return {"paid": message.body["total"]}
        >>> room.worker("orders", concurency=4)(pay)
        Traceback (most recent call last):
        postroom.errors.InvalidField: concurency: is not an option of a worker (did you mean concurrency?).
        """
        return self._workers.register(queue, options)

    def run_workers(self, *, grace: float = 10.0) -> None:
        """Handle messages until `stop_workers`, then let running handlers finish for `grace` seconds.

        >>> import threading
        >>> @room.worker("orders")
        ... def pay(message):
        ...     room.stop_workers()
        ...     return {"paid": True}
        >>> id = room.publish("orders", {"total": 12}).id
        >>> room.run_workers()
        >>> room.get(id).result
        {'paid': True}
        """
        self._workers.run(grace)

    def stop_workers(self) -> None:
        """Let `run_workers` end; handlers that run may finish.

        >>> room.stop_workers()
        >>> room.run_workers()  # ends at once
        """
        self._workers.stop()

    # life

    def _who(self) -> dict[str, Any]:
        return {"actor": self._builder.actor, "tenant": self._builder.tenant}

    def close(self) -> None:
        """Close the room; `with` does it for you.

        >>> room.close()
        >>> room.publish("orders", 1)
        Traceback (most recent call last):
        postroom.errors.StoreClosed: The store is closed. Open it again before you use it.
        """
        if self._closed:
            return
        self._closed = True
        self._workers.stop()
        with contextlib.suppress(StoreClosed):
            self._core.close()


@contextlib.contextmanager
def open_sync(url: str = "sqlite:///postroom.db", **options: Unpack[OpenOptions]) -> Iterator[SyncRoom]:
    """Open a room for threads: `with postroom.open_sync("sqlite:///room.db") as room: …`.

    Options are the fields of `RoomOptions`.

    >>> import postroom
    >>> with postroom.open_sync("memory://", actor="shop") as shop:
    ...     print(shop.actor)
    shop
    >>> with postroom.open_sync("memory://", durabilty="full") as shop:
    ...     pass
    Traceback (most recent call last):
    postroom.errors.InvalidField: durabilty: is not an option of open (did you mean durability?).
    """
    check_names(options, RoomOptions.__struct_fields__, "open")
    chosen = RoomOptions(**options)
    room = SyncRoom(RoomCore.open(url, chosen))
    try:
        yield room
    finally:
        room.close()
