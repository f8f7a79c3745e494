"""Questions to the store, the same for every kind of room; each is answered from one snapshot."""

from collections.abc import Iterator
from typing import Any

import msgspec

from postroom.errors import (
    EventsPruned,
    InvalidField,
    MessageNotFound,
    QueueNotFound,
    ScopeNotFound,
    SubscriptionNotFound,
)
from postroom.kernel import checks
from postroom.kernel.budgets.model import Budget
from postroom.kernel.housekeeping.housekeepers import ROSTER
from postroom.kernel.ledger import Event, Head
from postroom.kernel.model import (
    ConsumerMode,
    Counts,
    Document,
    Message,
    Position,
    Queue,
    Record,
    Schema,
    Scope,
    Subscription,
)
from postroom.kernel.ports import MANY, MessageFilter
from postroom.kernel.reader import Reader
from postroom.kernel.schedules.model import KIND as SCHEDULE
from postroom.kernel.schedules.model import PROGRESS, QueueSchedule, to_schedule
from postroom.kernel.states import State
from postroom.runtime.core import RoomCore
from postroom.runtime.options import FilterOptions, check_names

PAGE = 100
LARGEST_PAGE = 1000


class Page(msgspec.Struct, frozen=True):
    """Some messages, and the cursor that leads to the next ones; None when these were the last.

    >>> _ = room.publish_many("orders", [1, 2, 3])
    >>> page = room.messages(queue="orders", limit=2)
    >>> [message.body for message in page], page.next_cursor is None
    ([1, 2], False)
    """

    messages: list[Message]
    next_cursor: str | None

    def __iter__(self) -> Iterator[Message]:
        """The messages of this page; those of the next are asked for with its cursor."""
        return iter(self.messages)


class HousekeeperStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One system agent as `postroom housekeepers` and the API show it."""

    name: str
    work: str
    every_s: float
    last_run_at: int | None
    last_status: str
    last_duration_ms: float
    items_processed: int
    total_items: int
    runs: int
    last_error: str | None
    leader: str | None


class Queries:
    def __init__(self, core: RoomCore, tenant: str | None = None) -> None:
        self._core = core
        self._tenant = core.options.tenant if tenant is None else tenant

    def get(self, message_id: str) -> Message:
        is_text = checks.is_text(message_id)
        stored = self._core.read(lambda reader: reader.get(message_id)) if is_text else None
        if stored is None or stored.row.tenant != self._tenant:
            raise MessageNotFound(message_id=message_id)
        return self._core.directory.message(stored)

    def page(self, wanted: MessageFilter, cursor: str | None, limit: int) -> Page:
        checks.check_count("limit", limit, least=1, most=LARGEST_PAGE)
        after = _seq(cursor)
        for field, path in (("queue", wanted.queue), ("scope", wanted.scope)):
            if path is not None:
                self.queue(path) if field == "queue" else self.scope(path)
        found = self._core.read(lambda reader: reader.page(wanted, after, limit + 1))
        more = len(found) > limit
        found = found[:limit]
        messages = [self._core.directory.message(stored) for stored in found]
        return Page(messages, str(found[-1].row.seq) if more else None)

    def numbered(self, wanted: MessageFilter, after: int | None, limit: int) -> list[tuple[int, Message]]:
        """As a page, each with its number in the order of entry, which leads back to it."""
        checks.check_count("limit", limit, least=1, most=LARGEST_PAGE)
        found = self._core.read(lambda reader: reader.page(wanted, after, limit))
        return [(stored.row.seq, self._core.directory.message(stored)) for stored in found]

    def scope_counts(self, scope: str) -> dict[str, Counts]:
        """The counts of every queue of a scope, all from one moment."""
        self.scope(scope)

        def ask(reader: Reader) -> dict[str, Counts]:
            queues = reader.queues(self._tenant, scope)
            counts = reader.counts_of((queue.id, 0) for queue in queues)
            return {queue.slug: counts[queue.id, 0] for queue in queues}

        return self._core.read(ask)

    def filter(self, **wanted: Any) -> MessageFilter:
        states = wanted.pop("state", None)
        if isinstance(states, str):
            states = (states,)
        for state in states or ():
            if state not in set(State):
                raise InvalidField("state", f"is {state!r}, must be one of {', '.join(State)}")
        labels = wanted.pop("labels", None) or {}
        if wanted.get("queue"):
            scope, slug = checks.split_path(wanted["queue"])
            wanted["queue"] = f"{scope}/{slug}"
        check_names(wanted, FilterOptions.__annotations__, "a filter of messages")
        return MessageFilter(
            tenant=self._tenant, states=tuple(states or ()), labels=tuple(labels.items()), **wanted
        )

    def peek(self, path: str, limit: int, subscription: str | None) -> list[Message]:
        checks.check_count("limit", limit, least=1, most=LARGEST_PAGE)

        def ask(reader: Reader) -> Any:
            return reader.peek(self._line(reader, path, subscription), limit)

        return [self._core.directory.message(stored) for stored in self._core.read(ask)]

    def lines(self, paths: tuple[str, ...], subscription: str | None) -> tuple[int, ...]:
        several = len(paths) > 1
        return self._core.read(
            lambda reader: tuple(self._line(reader, path, subscription, mixed=several) for path in paths)
        )

    def _line(self, reader: Reader, path: str, subscription: str | None, *, mixed: bool = False) -> int:
        queue = self._find(reader, path)
        if queue.settings.consumer_mode is not ConsumerMode.BROADCAST:
            if subscription is not None and not mixed:
                raise InvalidField("subscription", f"is not for {queue.path}, whose consumers compete")
            return queue.id
        for known in reader.subscriptions(queue.id):
            if known.name == subscription:
                return -known.id
        raise SubscriptionNotFound(queue=queue.path, subscription=subscription)

    def _find(self, reader: Reader, path: str) -> Queue:
        scope, slug = checks.split_path(path)
        queue = reader.queue(self._tenant, scope, slug)
        if queue is None:
            if reader.scope(self._tenant, scope) is None:
                raise ScopeNotFound(scope=scope)
            raise QueueNotFound(queue=f"{scope}/{slug}")
        return queue

    def queue(self, path: str) -> Queue:
        return self._core.read(lambda reader: self._find(reader, path))

    def queues(self, scope: str | None) -> list[Queue]:
        if scope is not None:
            self.scope(scope)
        return self._core.read(lambda reader: reader.queues(self._tenant, scope))

    def scope(self, slug: str) -> Scope:
        scope = self._core.read(lambda reader: reader.scope(self._tenant, slug))
        if scope is None:
            raise ScopeNotFound(scope=slug)
        return scope

    def scopes(self) -> list[Scope]:
        return self._core.read(lambda reader: reader.scopes(self._tenant))

    def counts(self, path: str, subscription: str | None) -> Counts:
        def ask(reader: Reader) -> Counts:
            queue = self._find(reader, path)
            if subscription is None:
                return reader.counts(queue.id)
            return reader.counts(queue.id, -self._line(reader, path, subscription))

        return self._core.read(ask)

    def subscriptions(self, path: str) -> list[Subscription]:
        return self._core.read(lambda reader: reader.subscriptions(self._find(reader, path).id))

    def schedules(self, scope: str | None) -> list[QueueSchedule]:
        prefix = "" if scope is None else f"{self.scope(scope).slug}/"

        def ask(reader: Reader) -> list[QueueSchedule]:
            progress = {each.key: each for each in reader.documents(self._tenant, PROGRESS, prefix, "", MANY)}
            found = reader.documents(self._tenant, SCHEDULE, prefix, "", MANY)
            return [to_schedule(each, progress.get(each.key)) for each in found]

        return self._core.read(ask)

    def schemas(self, scope: str) -> list[Schema]:
        self.scope(scope)
        return self._core.read(lambda reader: reader.schemas(self._tenant, scope))

    def records(self, kind: str, key: str | None, after: int, limit: int) -> list[Record]:
        return self._core.read(lambda reader: reader.records(self._tenant, kind, key, after, limit))

    def latest_record(self, kind: str, key: str) -> Record | None:
        return self._core.read(lambda reader: reader.latest_record(self._tenant, kind, key))

    def accounts(self, names: tuple[str, ...]) -> dict[str, Budget]:
        now = self._core.clock.now()
        found = self._core.read(lambda reader: reader.accounts(self._tenant, names, now))
        known = {account.name: account for account in found}
        return {name: known.get(name) or Budget(name=name) for name in names}

    def list_accounts(self, prefix: str, frozen: bool, after: str, limit: int) -> list[Budget]:
        checks.check_count("limit", limit, least=1, most=LARGEST_PAGE)
        now = self._core.clock.now()
        return self._core.read(
            lambda reader: reader.list_accounts(
                self._tenant, prefix, now, frozen=frozen, after=after, limit=limit
            )
        )

    def record_numbered(self, number: int) -> Record | None:
        return self._core.read(lambda reader: reader.record(self._tenant, number))

    def document(self, kind: str, key: str) -> Document | None:
        found = self._core.read(lambda reader: reader.document(self._tenant, kind, key))
        return None if found is None or found.gone else found

    def documents(self, kind: str, prefix: str, after: str, limit: int) -> list[Document]:
        return self._core.read(lambda reader: reader.documents(self._tenant, kind, prefix, after, limit))

    def document_changes(self, kind: str) -> int:
        return self._core.read(lambda reader: reader.document_changes(self._tenant, kind))

    def positions(self) -> list[Position]:
        return self._core.read(lambda reader: reader.positions())

    def events(self, after: int, limit: int) -> list[Event]:
        """What comes after 0 is whatever is kept; a reader that had come further must not miss any."""

        def ask(reader: Reader) -> list[Event]:
            begins = reader.anchor().seq
            if 0 < after < begins:
                raise EventsPruned(after=after, first=begins + 1)
            return reader.events(after, limit)

        return self._core.read(ask)

    def head(self) -> Head:
        return self._core.read(lambda reader: reader.head())

    def housekeepers(self) -> list[HousekeeperStatus]:
        now = self._core.clock.now()
        runs, leader = self._core.read(
            lambda reader: (
                {run.name: run for run in reader.housekeepers()},
                reader.leader("housekeeping", now),
            )
        )
        found = []
        for keeper in ROSTER:
            run = runs.get(keeper.name)
            found.append(
                HousekeeperStatus(
                    name=keeper.name,
                    work=keeper.work,
                    every_s=keeper.every_s,
                    last_run_at=run.last_run_at if run else None,
                    last_status=run.last_status if run else "never run",
                    last_duration_ms=run.last_duration_us / 1000 if run else 0.0,
                    items_processed=run.items_processed if run else 0,
                    total_items=run.total_items if run else 0,
                    runs=run.runs if run else 0,
                    last_error=run.last_error if run else None,
                    leader=leader,
                )
            )
        return found


def _seq(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdecimal()) or len(cursor) > 18:
        raise InvalidField("cursor", f"{cursor!r} is not one that a listing gave")
    return int(cursor)
