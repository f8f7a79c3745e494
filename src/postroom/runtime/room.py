"""The asynchronous room. Calls made in one turn of the event loop are committed together."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, Unpack, overload

from postroom.clock import Clock
from postroom.errors import PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import Budget
from postroom.kernel.costly_checks import CheckAnswer, ChecksNeeded, CostlyCheck
from postroom.kernel.engine import CommandOutcome
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
from postroom.runtime.commit import CommitRequest, weight
from postroom.runtime.core import RoomCore, RoomOptions
from postroom.runtime.leader import LEASE_S, Leader
from postroom.runtime.ledger_reader import LedgerReader, LedgerReaderOptions
from postroom.runtime.options import FilterOptions, OpenOptions, QueueOptions, ScheduleOptions, check_names
from postroom.runtime.queries import PAGE, HousekeeperStatus, Page, Queries
from postroom.runtime.typed_queue import TypedQueue
from postroom.runtime.unit import AsyncUnit
from postroom.runtime.workers import AsyncWorkers, Handler, WorkerOptions

T = TypeVar("T")

HEAVY = 500
Pending = tuple[c.Command, "asyncio.Future[Any]"]


class Room:
    """A post room, open for use. Make one with `async with postroom.open(url) as room`.

    Its verbs are those of `SyncRoom`, awaited. What is asked for in one turn of the event loop is committed
    together.

    >>> import postroom
    >>> async with postroom.open("memory://") as shop:
    ...     _ = await shop.create_queue("orders")
    ...     _ = await shop.publish("orders", {"total": 12})
    ...     [message] = await shop.claim("orders")
    ...     await shop.complete(message, {"paid": True})
    ...     print((await shop.get(message.id)).result)
    {'paid': True}
    """

    def __init__(self, core: RoomCore) -> None:
        self._core = core
        self._builder = CommandBuilder(core.actor, core.options.tenant)
        self._queries = Queries(core)
        self._batch: list[Pending] = []
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="postroom-read")
        self._workers = AsyncWorkers(self)
        self._closed = False
        self._in_flight = 0
        self._event_reads: dict[tuple[int, int, int], asyncio.Future[list[Event]]] = {}

    @property
    def actor(self) -> str:
        """Who this room acts as; every event of the ledger names its actor."""
        return self._builder.actor

    @property
    def tenant(self) -> str:
        """Whose room it is when nobody says otherwise."""
        return self._builder.tenant

    @property
    def clock(self) -> Clock:
        """The clock that all times of this room come from."""
        return self._core.clock

    @property
    def is_shared(self) -> bool:
        """Whether other processes may have the same store open.

        >>> async with postroom.open("memory://") as shop:
        ...     print(shop.is_shared)
        False
        """
        return self._core.writers > 1

    @property
    def limits(self) -> Limits:
        """How large what is accepted may be."""
        return self._core.options.limits

    def to_message(self, stored: Stored, *, with_token: bool = False) -> Message:
        """A row as users see it."""
        return self._core.directory.message(stored, with_token=with_token)

    # how a command is carried out

    def run(self, command: c.Command) -> "asyncio.Future[Any]":
        """Carry out any command of the kernel; the future ends when its outcome is durable."""
        if self._closed:
            raise StoreClosed
        batch = self._batch
        # To ask which loop runs is a call of the system, and those of one batch run in the same.
        loop = batch[0][1].get_loop() if batch else asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if not batch and self._in_flight < self._core.writers:
            loop.call_soon(self._flush, loop)
        batch.append((command, future))
        return future

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        """Commit what was asked for in this turn. While the disk works, the next batch gathers."""
        batch, self._batch = self._batch, []
        if not batch:
            return
        committer = self._core.committer
        commands = [command for command, _ in batch]
        is_heavy = len(commands) > 1 and weight(commands) > HEAVY
        self._in_flight += 1

        def deliver(outcomes: list[CommandOutcome]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is gone, and nobody waits any more
                loop.call_soon_threadsafe(self._answered, loop, batch, outcomes)

        try:
            outcomes = None if is_heavy else committer.try_now(commands)
            if outcomes is None and (is_heavy or not committer.try_half(commands, deliver)):
                committer.submit(CommitRequest(commands, deliver))
        except Exception as error:
            # Closed, or something unforeseen: whoever waits is told, and the next batch goes on.
            outcomes = [CommandOutcome(error=error) for _ in batch]
        if outcomes is not None:
            self._answered(loop, batch, outcomes)

    def _answered(
        self, loop: asyncio.AbstractEventLoop, batch: list[Pending], outcomes: list[CommandOutcome]
    ) -> None:
        self._in_flight -= 1
        self._resolve(batch, outcomes)
        if self._batch:
            # After those just answered had their turn, so that what they ask next joins this batch.
            loop.call_soon(self._flush, loop)

    def _resolve(self, batch: list[Pending], outcomes: list[CommandOutcome]) -> None:
        for (command, future), outcome in zip(batch, outcomes, strict=True):
            error = outcome.error
            if future.cancelled():
                self._hand_back(command, outcome)
            elif error is None:
                future.set_result(outcome.value)
            elif isinstance(error, ChecksNeeded):
                self._defer(command, future, error)
            else:
                future.set_exception(error)

    def _defer(self, command: c.Command, future: "asyncio.Future[Any]", needed: ChecksNeeded) -> None:
        """It waits for answers, and nobody else with it."""
        loop = asyncio.get_running_loop()

        def deliver(outcome: CommandOutcome) -> None:
            with contextlib.suppress(RuntimeError):  # as above
                loop.call_soon_threadsafe(self._resolve, [(command, future)], [outcome])

        self._core.committer.defer(command, needed, deliver)

    def _hand_back(self, command: c.Command, outcome: CommandOutcome) -> None:
        """Whoever claimed is gone: give the messages back at once instead of letting the leases run out."""
        if not isinstance(outcome.value, ClaimedBatch) or self._closed:
            return
        for stored in outcome.value.messages:
            assert stored.row.token is not None
            release = c.Release(
                message_id=stored.row.id,
                token=stored.row.token,
                actor=command.actor,
                tenant=command.tenant,
            )
            self.run(release).add_done_callback(lambda future: future.exception())

    def may_delete(self) -> bool:
        """Not right after the clock jumped ahead: it may be wrong, and what is gone does not come back."""
        watch = self._core.clock_watch
        return watch is None or watch.may_delete()

    async def look(self, question: Callable[[Reader], T], *, quick: bool = False) -> T:
        """Ask the store anything; all of one question is answered from one snapshot.

        `quick` is for a few rows found by an index: where the store allows it, no thread is woken for them.
        """
        if quick and self._core.reads_inline and not self._closed:
            return self._core.read(question)
        return await self._ask(lambda: self._core.read(question))

    def answer_checks(self, checks: Sequence[CostlyCheck]) -> dict[bytes, CheckAnswer]:
        """Blocks: for questions that are answered in a thread of their own.

        >>> async with postroom.open("memory://") as shop:
        ...     print(shop.answer_checks([]))
        {}
        """
        return self._core.answer_checks(checks)

    @contextlib.asynccontextmanager
    async def woken(self, *, commits: bool = False) -> AsyncIterator[asyncio.Event]:
        """An event that is set when the ledger has something new; with `commits`, after every commit.

        >>> async with postroom.open("memory://") as shop, shop.woken() as news:
        ...     _ = await shop.create_queue("orders")
        ...     print(await news.wait())
        True
        """
        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(news.set)

        self._core.wakeups.follow(wake, commits=commits)
        try:
            yield news
        finally:
            self._core.wakeups.unfollow(wake)

    async def _ask(self, question: Callable[..., T], *args: Any) -> T:
        if self._closed:
            raise StoreClosed
        return await asyncio.get_running_loop().run_in_executor(self._threads, question, *args)

    # messages

    async def publish(self, queue: str, body: Any = None, **options: Unpack[PublishOptions]) -> Receipt:
        """Put a message into a queue. When this returns, it survives a crash and a power cut."""
        return (await self.run(self._builder.publish(queue, body, options)))[0]

    async def publish_many(
        self, queue: str, bodies: Iterable[Any | NewMessage], **options: Unpack[PublishOptions]
    ) -> list[Receipt]:
        """Put many messages into a queue, all or none. Items may be bodies or whole `NewMessage`s."""
        return await self.run(self._builder.publish_many(queue, bodies, **options))

    async def claim(
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
        """
        command = self._builder.claim(queues, limit, lease, subscription, worker, labels, ids)
        taken = await self._take(command)
        if not taken.messages and wait > 0:
            taken = await self._wait_and_claim(command, wait)
        return [self._core.directory.message(stored, with_token=True) for stored in taken.messages]

    async def take(self, command: c.Claim, wait: float = 0) -> list[Stored]:
        """Carry out a claim as it stands, of whatever tenant, waiting like `claim`."""
        taken = await self._take(command)
        if not taken.messages and wait > 0:
            taken = await self._wait_and_claim(command, wait)
        return taken.messages

    async def _take(self, command: c.Claim) -> ClaimedBatch:
        future = self.run(command)
        try:
            return await future
        except asyncio.CancelledError:
            # Cancelled between the answer and its arrival: nobody else will give the messages back.
            if future.done() and not future.cancelled() and future.exception() is None:
                self._hand_back(command, CommandOutcome(future.result()))
            raise

    async def _wait_and_claim(self, command: c.Claim, wait: float) -> ClaimedBatch:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        queries = Queries(self._core, command.tenant)
        lines = await self._ask(queries.lines, command.queues, command.subscription)
        news = asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(news.set)

        with self._core.wakeups.waiting(lines, wake, is_choosy=bool(command.labels)) as waiter:
            while True:
                news.clear()
                self._core.wakeups.rearm(waiter)
                taken = await self._take(command)
                left = until - loop.time()
                if taken.messages or left <= 0:
                    return taken
                # Not wait_for: it may swallow a cancellation that comes together with the wake-up.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._core.nap(taken.next_due, left)):
                        await news.wait()

    async def complete(self, claimed: Message, result: Any = None) -> None:
        """The work is done; `result` is kept with the message."""
        await self.run(self._builder.complete(claimed, result))

    async def complete_many(self, done: Iterable[tuple[Message, Any]]) -> list[PostroomError | None]:
        """Messages with their results, with one commit. One that is refused keeps no other from being
        completed: the errors are in the places of their messages."""
        outcomes = await self.run(self._builder.complete_many(done))
        return [each if isinstance(each, PostroomError) else None for each in outcomes]

    async def fail(
        self,
        claimed: Message,
        reason: str,
        *,
        kind: str | None = None,
        retry: bool = True,
        delay: float | None = None,
    ) -> None:
        """It did not work: again after a pause, or (`retry=False`, or no attempts left) a dead letter."""
        await self.run(self._builder.fail(claimed, reason, kind, retry, delay))

    async def release(self, claimed: Message) -> None:
        """Give it back untouched; the attempt does not count."""
        await self.run(c.Release(**self._builder.held(claimed)))

    async def extend(self, claimed: Message, lease: float | None = None) -> int:
        """Keep the claim for another lease from now; returns its new end."""
        return await self.run(c.Extend(lease_s=lease, **self._builder.held(claimed)))

    async def snooze(
        self,
        claimed: Message,
        seconds: float | None = None,
        *,
        until: Moment | None = None,
        reason: str | None = None,
    ) -> None:
        """Later, without counting an attempt."""
        await self.run(self._builder.snooze(claimed, seconds, until, reason))

    async def cancel(self, message_id: str, reason: str = "cancelled") -> None:
        """End an open message: nobody will be given it."""
        await self.run(c.Cancel(message_id=message_id, reason=reason, **self._who()))

    async def kill(self, message_id: str, reason: str) -> None:
        """End an open message as a dead letter."""
        await self.run(c.Kill(message_id=message_id, reason=reason, **self._who()))

    async def reprioritise(
        self, message_id: str, *, tier: str | None = None, score: int | None = None
    ) -> None:
        """Give an open message another tier or score."""
        await self.run(c.Reprioritise(message_id=message_id, tier=tier, score=score, **self._who()))

    async def replay(self, *message_ids: str, scope: str | None = None, limit: int = 1000) -> list[str]:
        """Dead letters back to where they came from: these, or up to `limit` of a scope."""
        return await self.run(c.Replay(message_ids=message_ids, scope=scope, limit=limit, **self._who()))

    async def discard(self, *message_ids: str, scope: str | None = None, limit: int = 1000) -> list[str]:
        """Give dead letters up for good: these, or up to `limit` of a scope."""
        return await self.run(c.Discard(message_ids=message_ids, scope=scope, limit=limit, **self._who()))

    def unit(self) -> AsyncUnit:
        """`async with room.unit() as unit:` gathers verbs that commit together when the block ends well."""
        return AsyncUnit(self._builder, self.run)

    # reading

    async def get(self, message_id: str) -> Message:
        """A message by its id, live or archived."""
        return await self._ask(self._queries.get, message_id)

    async def messages(
        self, *, cursor: str | None = None, limit: int = PAGE, **wanted: Unpack[FilterOptions]
    ) -> Page:
        """A page of messages, live and archived; filters are those of `FilterOptions`."""
        return await self._ask(self._queries.page, self._queries.filter(**wanted), cursor, limit)

    async def numbered(
        self, *, after: int | None = None, limit: int = PAGE, **wanted: Unpack[FilterOptions]
    ) -> list[tuple[int, Message]]:
        """Messages with their numbers, after (newest first: before) a number."""
        return await self._ask(self._queries.numbered, self._queries.filter(**wanted), after, limit)

    async def scope_counts(self, scope: str) -> dict[str, Counts]:
        """The counts of every queue of a scope, all from one moment."""
        return await self._ask(self._queries.scope_counts, scope)

    async def peek(self, queue: str, limit: int = 10, *, subscription: str | None = None) -> list[Message]:
        """What would be claimed next, without claiming it."""
        return await self._ask(self._queries.peek, queue, limit, subscription)

    async def counts(self, queue: str, *, subscription: str | None = None) -> Counts:
        """How many messages of a queue are in each state."""
        return await self._ask(self._queries.counts, queue, subscription)

    # scopes and queues

    async def create_scope(
        self, slug: str, *, display_name: str = "", description: str = "", exist_ok: bool = False
    ) -> Scope:
        """Make a scope, which has its own queues, dead letters and keys."""
        return await self.run(
            c.CreateScope(
                slug=slug,
                display_name=display_name,
                description=description,
                exist_ok=exist_ok,
                **self._who(),
            )
        )

    async def set_scope_state(self, slug: str, state: str) -> Scope:
        """Pause, drain, archive or open (`active`) a scope with all its queues."""
        return await self.run(c.SetScopeState(slug=slug, state=place_state(state), **self._who()))

    async def delete_scope(self, slug: str) -> None:
        """Remove a scope that has no open messages and no dead letters."""
        await self.run(c.DeleteScope(slug=slug, **self._who()))

    async def create_queue(
        self, queue: str, *, exist_ok: bool = False, **settings: Unpack[QueueOptions]
    ) -> Queue:
        """Make a queue; settings are the fields of `QueueSettings`."""
        return await self.run(
            c.CreateQueue(queue=queue, settings=dict(settings), exist_ok=exist_ok, **self._who())
        )

    async def update_queue(self, queue: str, **settings: Unpack[QueueOptions]) -> Queue:
        """Change settings of a queue; those not named stay."""
        return await self.run(c.UpdateQueue(queue=queue, settings=dict(settings), **self._who()))

    async def set_queue_state(self, queue: str, state: str) -> Queue:
        """Pause, drain, archive or open (`active`) a queue."""
        return await self.run(c.SetQueueState(queue=queue, state=place_state(state), **self._who()))

    async def delete_queue(self, queue: str) -> None:
        """Remove a queue that has no open messages."""
        await self.run(c.DeleteQueue(queue=queue, **self._who()))

    async def scope(self, slug: str) -> Scope:
        """A scope by its name."""
        return await self._ask(self._queries.scope, slug)

    async def scopes(self) -> list[Scope]:
        """All scopes."""
        return await self._ask(self._queries.scopes)

    @overload
    def queue(self, queue: str) -> Coroutine[Any, Any, Queue]: ...
    @overload
    def queue(self, queue: str, body_type: type[T]) -> TypedQueue[T]: ...
    def queue(
        self, queue: str, body_type: type[T] | None = None
    ) -> Coroutine[Any, Any, Queue] | TypedQueue[T]:
        """A queue and its settings, awaited; with a type, the queue of bodies of that type, at once."""
        if body_type is None:
            return self._ask(self._queries.queue, queue)
        return TypedQueue(self, queue, body_type)

    async def queues(self, scope: str | None = None) -> list[Queue]:
        """The queues of a scope, or all; those of the system too."""
        return await self._ask(self._queries.queues, scope)

    # schedules

    async def schedule(
        self, name: str, queue: str, body: Any = None, **options: Unpack[ScheduleOptions]
    ) -> QueueSchedule:
        """Publish to a queue at times: by `cron` in a `zone`, every so many seconds, or once `at` a moment.

        The same name again changes it whole. While what it published is open, its times are passed over,
        unless `overlap`. `missed` is for times that nobody was there for: `skip`, `once` or `all`.
        """
        return await self.run(self._builder.schedule(name, queue, body, options))

    async def schedules(self, scope: str | None = None) -> list[QueueSchedule]:
        """Schedules of queues, of a scope or all, with when each comes next and what it published last."""
        return await self._ask(self._queries.schedules, scope)

    async def unschedule(self, name: str) -> None:
        """Remove a schedule; what it has published stays."""
        await self.run(c.DropSchedule(name=name, **self._who()))

    async def run_schedule(self, name: str) -> Receipt:
        """Publish what a schedule would, now, besides its times."""
        return await self.run(c.RunSchedule(name=name, **self._who()))

    # subscriptions, schemas, records

    async def subscribe(self, queue: str, name: str, *, earliest: bool = False) -> Subscription:
        """Give a broadcast queue another reader, from now on or (`earliest`) from what is kept."""
        return await self.run(c.Subscribe(queue=queue, name=name, earliest=earliest, **self._who()))

    async def unsubscribe(self, queue: str, name: str) -> None:
        """Take a reader away, with what waits for it."""
        await self.run(c.Unsubscribe(queue=queue, name=name, **self._who()))

    async def subscriptions(self, queue: str) -> list[Subscription]:
        """The readers of a broadcast queue."""
        return await self._ask(self._queries.subscriptions, queue)

    async def check_seen(self, queue: str, subscription: str, key: str) -> bool:
        """Whether this subscriber has seen this key; it is remembered for a day."""
        return await self.run(c.CheckSeen(queue=queue, name=subscription, key=key, **self._who()))

    async def register_schema(
        self, scope: str, name: str, document: dict[str, Any], *, version: int | None = None
    ) -> Schema:
        """Publish a version of a JSON Schema that bodies of queues must match."""
        return await self.run(
            c.RegisterSchema(scope=scope, name=name, document=document, version=version, **self._who())
        )

    async def schemas(self, scope: str) -> list[Schema]:
        """The schemas of a scope."""
        return await self._ask(self._queries.schemas, scope)

    async def record(
        self, kind: str, key: str, data: dict[str, Any], *, about: Message | None = None
    ) -> None:
        """Keep a fact (a cost, a measurement) beside the messages."""
        await self.run(self._builder.record(kind, key, data, about))

    async def records(
        self, kind: str, key: str | None = None, *, after: int = 0, limit: int = PAGE
    ) -> list[Record]:
        """Facts of a kind, oldest first, after a number."""
        return await self._ask(self._queries.records, kind, key, after, limit)

    async def latest_record(self, kind: str, key: str) -> Record | None:
        """The newest fact of a kind under a key."""
        return await self._ask(self._queries.latest_record, kind, key)

    async def accounts(self, *names: str) -> dict[str, Budget]:
        """What is spent and reserved of each; an account nobody has used yet is empty."""
        return await self._ask(self._queries.accounts, names)

    async def list_accounts(
        self, prefix: str = "", *, frozen: bool = False, after: str = "", limit: int = PAGE
    ) -> list[Budget]:
        """Accounts whose names begin so, by name; with `frozen`, only those that are frozen."""
        return await self._ask(self._queries.list_accounts, prefix, frozen, after, limit)

    async def record_numbered(self, number: int) -> Record | None:
        """The record that an event of the ledger tells of."""
        return await self._ask(self._queries.record_numbered, number)

    async def document(self, kind: str, key: str) -> Document | None:
        """A document (a schedule, a task) by kind and key, or None."""
        return await self._ask(self._queries.document, kind, key)

    async def documents(
        self, kind: str, *, prefix: str = "", after: str = "", limit: int = PAGE
    ) -> list[Document]:
        """Documents of a kind by key, after a key; `prefix` is how their keys begin."""
        return await self._ask(self._queries.documents, kind, prefix, after, limit)

    async def document_changes(self, kind: str) -> int:
        """How often documents of a kind were changed, ever; to know cheaply whether to read them again."""
        return await self._ask(self._queries.document_changes, kind)

    # the ledger

    async def events(self, after: int = 0, *, follow: bool = False) -> AsyncGenerator[Event, None]:
        """Every event after a position, in order; with `follow`, also those to come, as they come."""
        async with contextlib.aclosing(self.ledger_reader(after=after).events(follow=follow)) as events:
            async for event in events:
                yield event

    async def event_pages(self, after: int = 0, *, follow: bool = False) -> AsyncGenerator[list[Event], None]:
        """The same, as many at once as are there; for readers that take their time between."""
        async with contextlib.aclosing(self.ledger_reader(after=after).pages(follow=follow)) as pages:
            async for page in pages:
                yield page

    async def read_events(self, after: int, limit: int) -> list[Event]:
        """The next events after a position, those that are there now."""
        asked = (after, limit, self._core.wakeups.news)
        reading = self._event_reads.get(asked)
        if reading is None:
            if self._closed:
                raise StoreClosed
            reading = asyncio.get_running_loop().run_in_executor(
                self._threads, self._queries.events, after, limit
            )
            self._event_reads[asked] = reading

            def end(done: "asyncio.Future[list[Event]]") -> None:
                self._event_reads.pop(asked, None)
                # Of those who asked, perhaps nobody waits any more: then nobody need be told of a failure.
                if not done.cancelled():
                    done.exception()

            reading.add_done_callback(end)
        return list(await asyncio.shield(reading))

    def ledger_reader(self, name: str = "", **options: Unpack[LedgerReaderOptions]) -> LedgerReader:
        """Follows the ledger; with a name, from where the reader of that name had come to.

        >>> async with postroom.open("memory://") as shop:
        ...     _ = await shop.create_queue("orders")
        ...     async for event in shop.ledger_reader(after=0).events(follow=False):
        ...         last = event.type
        ...     print(last)
        queue.created
        """
        return LedgerReader(self, name, **options)

    def leader(self, name: str, *, lease_s: float = LEASE_S) -> Leader:
        """Leads under this name when no other process does.

        >>> async with postroom.open("memory://") as shop:
        ...     print(await shop.leader("nightly report").lead())
        True
        """
        return Leader(self, name, self._core.clock, lease_s=lease_s)

    async def head(self) -> Head:
        """The last event of the ledger and its hash."""
        return await self._ask(self._queries.head)

    async def set_position(self, name: str, seq: int, *, hold: bool = False) -> None:
        """Remember how far a reader of the ledger has come; `hold` keeps the pruner behind it."""
        await self.run(c.SetPosition(name=name, seq=seq, hold=hold, **self._who()))

    async def positions(self) -> list[Position]:
        """How far each named reader of the ledger has come."""
        return await self._ask(self._queries.positions)

    async def housekeepers(self) -> list[HousekeeperStatus]:
        """What keeps the room in order, and when each last ran."""
        return await self._ask(self._queries.housekeepers)

    async def housekeep(self, name: str) -> int:
        """Run one housekeeper now; how many items it handled."""
        return await self._ask(self._core.housekeep, name)

    async def wipe_log(self) -> None:
        """What was overwritten leaves the log beside the store too.

        >>> async with postroom.open("memory://") as shop:
        ...     await shop.wipe_log()
        """
        await self._ask(self._core.store.wipe_log)

    # workers

    def worker(self, queue: str, **options: Unpack[WorkerOptions]) -> Callable[[Handler], Handler]:
        """Decorate a function that handles messages of a queue; `run_workers` calls it."""
        return self._workers.register(queue, options)

    async def run_workers(self, *, grace: float = 10.0) -> None:
        """Handle messages until `stop_workers` or cancellation; running handlers may finish for `grace`."""
        await self._workers.run(grace)

    def stop_workers(self) -> None:
        """Let `run_workers` end; handlers that run may finish."""
        self._workers.stop()

    # life

    def _who(self) -> dict[str, Any]:
        return {"actor": self._builder.actor, "tenant": self._builder.tenant}

    async def close(self) -> None:
        """Close the room; `with` does it for you."""
        if self._closed:
            return
        self._workers.stop()
        waiting = [future for _, future in self._batch]
        if waiting:
            await asyncio.wait(waiting)
        self._closed = True
        self._core.wakeups.wake_all()
        await asyncio.get_running_loop().run_in_executor(None, self._core.close)
        await asyncio.sleep(0)
        self._threads.shutdown(wait=False)


@contextlib.asynccontextmanager
async def open_room(
    url: str = "sqlite:///postroom.db", **options: Unpack[OpenOptions]
) -> AsyncIterator[Room]:
    """Open a room: `async with postroom.open("sqlite:///room.db") as room: …`.

    Options are the fields of `RoomOptions`.

    >>> import postroom
    >>> async with postroom.open("memory://", actor="shop") as shop:
    ...     print(shop.actor)
    shop
    """
    check_names(options, RoomOptions.__struct_fields__, "open")
    chosen = RoomOptions(**options)
    loop = asyncio.get_running_loop()

    room = Room(await loop.run_in_executor(None, RoomCore.open, url, chosen))
    try:
        yield room
    finally:
        await room.close()
