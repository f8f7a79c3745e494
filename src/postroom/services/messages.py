"""Messages: published, listed, read, explained, cancelled; whole conversations by their correlation id."""

from collections.abc import Sequence
from typing import Any

import msgspec

from postroom.errors import InvalidField, MessageNotFound, SchemaNotFound, SubscriptionNotFound, SystemQueue
from postroom.ids import possible_conversations
from postroom.kernel import checks, jsontext
from postroom.kernel import commands as c
from postroom.kernel.access.acl import AccessVerdict
from postroom.kernel.access.permissions import Permission
from postroom.kernel.costly_checks import AnswerChecks, NeededChecks
from postroom.kernel.ledger import Event
from postroom.kernel.model import ConsumerMode, Counts, Message, NewMessage, Queue, Receipt, Scope
from postroom.kernel.ports import MessageFilter
from postroom.kernel.reader import Reader
from postroom.kernel.reviews import publishing
from postroom.kernel.reviews.sections import HitlInvalid
from postroom.kernel.rows import Stored
from postroom.kernel.schemas import Validators
from postroom.kernel.states import OPEN, State
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service, ServiceCall
from postroom.services.message_events import events_of
from postroom.services.pages import bad_cursor

# The most messages of one call from outside; the owner at the shell may publish as many as the room takes.
MOST_PUBLISHED = 1000
MOST_LISTED = 1000
MOST_DELIVERIES = 1000
# So many are read on the event loop itself.
FEW = 20
# Parts of a review that tell of what has happened to it.
RULES_SET = frozenset({"waiting", "escalated"})
FILTERS = frozenset(MessageFilter.__struct_fields__) - {"tenant", "scope", "queue", "queue_ids", "reviews"}


class FoundMessage(msgspec.Struct, frozen=True):
    """A message with the numbers of where it lies, and its own in the order of entry."""

    message: Message
    scope_id: int
    queue_id: int
    seq: int


class PublishedMessage(msgspec.Struct, frozen=True):
    """`created` is False when the key was used before: then it is the first message of the key."""

    found: FoundMessage
    queue: Queue
    created: bool


class MessagePage(msgspec.Struct, frozen=True):
    items: list[FoundMessage]
    more: bool


class MessageStory(msgspec.Struct, frozen=True):
    """A message with all that happened to it, and what it depends on."""

    message: Message
    events: list[Event]
    deliveries: list[Message]
    scope: Scope | None
    queue: Queue | None
    """None when it was deleted."""
    counts: Counts
    waits_for: str = ""
    """Of a message to an agent: why nobody takes it, and what to do."""


class WaitingMessages(msgspec.Struct, frozen=True):
    """What would be claimed next, and how many messages of each state there are."""

    messages: list[Message]
    counts: Counts


class MessageService(Service):
    """What all services share that return messages."""

    def _found(self, stored: Stored, *, with_token: bool = False) -> FoundMessage:
        message = self._context.room.to_message(stored, with_token=with_token)
        return FoundMessage(message, stored.row.scope_id, stored.row.queue_id, stored.row.seq)

    async def _read(self, *message_ids: str) -> list[FoundMessage]:
        """As they are now; they were there a moment ago."""
        room = self._context.room
        stored = await room.look(
            lambda reader: [reader.get(message_id) for message_id in message_ids],
            quick=len(message_ids) <= FEW,
        )
        return [self._found(each) for each in stored if each is not None]


class Messages(MessageService):
    PUBLISH = Operation("message.publish", Permission.PUBLISH, 201)
    LIST = Operation("message.list", Permission.VIEW)
    READ = Operation("message.read", Permission.VIEW)
    PEEK = Operation("message.peek", Permission.VIEW)
    CANCEL = Operation("message.cancel", Permission.MANAGE)

    async def publish(
        self,
        caller: Caller,
        scope: str,
        queue: str,
        drafts: Sequence[NewMessage],
        *,
        schemas: Sequence[str | None] = (),
    ) -> list[PublishedMessage]:
        """Publish, all or none. With a known key and the same body, the answer is the first message.

        `schemas` name one for each draft that is checked besides the queue's own.
        """
        async with self._call(caller, self.PUBLISH) as call:
            found, receipts = await self._publish(call, scope, queue, drafts, schemas)
            stored = await self._read(*(receipt.id for receipt in receipts))
            return [
                PublishedMessage(each, found, receipt.created)
                for each, receipt in zip(stored, receipts, strict=True)
            ]

    async def publish_many(
        self, caller: Caller, scope: str, queue: str, drafts: Sequence[NewMessage]
    ) -> list[Receipt]:
        """As `publish`, for so many that nobody looks at each: all that is told is what became of them."""
        async with self._call(caller, self.PUBLISH) as call:
            return (await self._publish(call, scope, queue, drafts, ()))[1]

    async def _publish(
        self,
        call: ServiceCall,
        scope: str,
        queue: str,
        drafts: Sequence[NewMessage],
        schemas: Sequence[str | None],
    ) -> tuple[Queue, list[Receipt]]:
        room = self._context.room

        def check(access: Access) -> Queue:
            found = access.queue(scope, queue)
            if found.system:
                raise SystemQueue(queue=found.path, verb="published to by hand")
            _check_count(call.caller, len(drafts))
            for number, draft in enumerate(drafts):
                _check_review(access, found, draft)
                if draft.after:
                    _check_after(access, found, draft.after)
                if number < len(schemas) and schemas[number] is not None:
                    _check_schema(access, found, schemas[number] or "", draft.body, room.answer_checks)
            return found

        found = await call.look(check, quick=len(drafts) <= FEW and not any(schemas))
        messages = [_signed(draft, call.caller) for draft in drafts]
        command = c.Publish(queue=found.path, messages=messages, **call.who)
        return found, await call.commit(command)

    async def list_page(
        self,
        caller: Caller,
        scope: str | None = None,
        queue: str | None = None,
        *,
        cursor: str | None = None,
        after: int | None = None,
        limit: int = 50,
        **filters: Any,
    ) -> MessagePage:
        """Messages, live and archived, in the order they came, of a queue, a scope or (for the owner) of all.

        They go on after the message whose id is the `cursor`, or after a number.
        """
        async with self._call(caller, self.LIST) as call:
            call.subject.correlation_id = filters.get("correlation_id")

            def find(access: Access) -> list[Stored]:
                place = None
                if queue is not None and scope is not None:
                    path = access.queue(scope, queue).path
                    place = access.find_scope(scope)
                elif scope is not None:
                    place, path = access.scope(scope), None
                else:
                    access.require_owner()
                    path = None
                checks.check_count("limit", limit, least=1, most=MOST_LISTED)
                wanted = _filter(access.tenant, place, path, filters)
                start = after if cursor is None else _place_of(access, place, cursor)
                if place is None:
                    return access.reader.page(wanted, start, limit + 1)
                return access.messages(place, wanted, start, limit + 1)

            stored = await call.look(find, quick=False)
            return MessagePage([self._found(each) for each in stored[:limit]], len(stored) > limit)

    async def read(self, caller: Caller, message_id: str, *, scope: str | None = None) -> FoundMessage:
        """One message, live or archived."""
        async with self._call(caller, self.READ) as call:
            return self._found(await call.look(lambda access: _message(access, scope, message_id)))

    async def explain(self, caller: Caller, message_id: str, *, scope: str | None = None) -> MessageStory:
        """A message with everything that happened to it."""
        async with self._call(caller, self.READ) as call:
            room = self._context.room

            def tell(access: Access) -> tuple[Stored, list[Event], list[Stored], Any]:
                stored, reader = _message(access, scope, message_id), access.reader
                named, slug = self._context.queue_name(reader, stored.row.queue_id)
                queue = reader.queue(access.tenant, named, slug)
                deliveries: list[Stored] = []
                if _is_broadcast(queue) and stored.row.subscription_id is None:
                    parts = MessageFilter(tenant=access.tenant, parent_id=stored.row.id, deliveries=True)
                    deliveries = reader.page(parts, None, MOST_DELIVERIES)
                counts = reader.counts(queue.id) if queue is not None else Counts()
                about = (reader.scope(access.tenant, named), queue, counts)
                return stored, events_of(reader, stored.row), deliveries, about

            stored, events, deliveries, about = await call.look(tell, quick=False)
            message = room.to_message(stored)
            waits_for = ""
            place: Scope | None = about[0]
            if message.state in OPEN and message.agent and place and self._context.is_own(place):
                from postroom.services.agent_hosts import list_agent_hosts

                host = (await list_agent_hosts(room)).get(message.agent)
                waits_for = host.explain() if host is not None else ""
            parts = [room.to_message(each) for each in deliveries]
            return MessageStory(message, events, parts, *about, waits_for=waits_for)

    async def peek(
        self, caller: Caller, scope: str, queue: str, limit: int = 10, *, subscription: str | None = None
    ) -> WaitingMessages:
        """What would be claimed next, without claiming it."""
        async with self._call(caller, self.PEEK) as call:

            def find(access: Access) -> tuple[list[Stored], Counts]:
                found = access.queue(scope, queue)
                checks.check_count("limit", limit, least=1, most=MOST_LISTED)
                line, number = _line(access.reader, found, subscription)
                return access.reader.peek(line, limit), access.reader.counts(found.id, number)

            stored, counts = await call.look(find, quick=False)
            return WaitingMessages([self._context.room.to_message(each) for each in stored], counts)

    async def cancel(
        self,
        caller: Caller,
        *message_ids: str,
        scope: str | None = None,
        reason: str = "cancelled",
    ) -> list[FoundMessage]:
        """Never again, all of them or none. A holder learns of it when it next uses its claim."""
        async with self._call(caller, self.CANCEL) as call:
            ids = list(dict.fromkeys(message_ids))
            await call.look(lambda access: [access.message(scope, each) for each in ids])
            steps = tuple(c.Cancel(message_id=each, reason=reason, **call.who) for each in ids)
            await call.commit(steps[0] if len(steps) == 1 else c.Unit(commands=steps, **call.who))
            return await self._read(*ids)


# what is published


def _message(access: Access, scope: str | None, wanted: str) -> Stored:
    """By its own id, or the message that began a conversation by what `send` printed."""
    try:
        return access.message(scope, wanted)
    except MessageNotFound:
        for conversation in possible_conversations(wanted):
            asked = MessageFilter(tenant=access.tenant, correlation_id=conversation)
            for first in access.reader.page(asked, None, 1):
                return access.message(scope, first.row.id)
        raise


def _check_after(access: Access, queue: Queue, message_ids: Sequence[Any]) -> None:
    """Only for what the caller may look at: what waits for a message tells whether and how it ended."""
    sight = access.sight(access.find_scope(queue.scope))
    everywhere = access.caller.is_admin and not access.caller.scope_id
    for message_id in message_ids:
        stored = access.reader.get(message_id) if checks.is_text(message_id) else None
        if stored is not None and stored.row.tenant == access.tenant:
            here = stored.row.scope_id == queue.scope_id and sight.covers_row(stored.row)
            if here or everywhere:
                continue
        raise MessageNotFound(message_id=message_id)


def _check_count(caller: Caller, count: int) -> None:
    if not count:
        raise InvalidField("messages", "has none, at least 1 is needed")
    if not caller.is_at_shell and count > MOST_PUBLISHED:
        raise InvalidField("messages", f"has {count}, at most {MOST_PUBLISHED} at once")


def _signed(draft: NewMessage, caller: Caller) -> NewMessage:
    """The author is whoever calls; only the owner may name another."""
    if caller.is_owner and draft.source_id is not None:
        return draft
    kind = draft.source_type if caller.is_owner else caller.source_type
    return msgspec.structs.replace(draft, source_type=kind, source_id=caller.author)


def _check_review(access: Access, queue: Queue, draft: NewMessage) -> None:
    spec = draft.hitl_spec
    if spec is None:
        return
    # What others understand by a review is their business; the owner may speak to them at the shell.
    ours = isinstance(spec, dict) and bool({"sections", "pattern"} & set(spec))
    if not ours and not access.caller.is_at_shell:
        raise HitlInvalid(problem="it must have sections or name a pattern")
    for name in sorted(RULES_SET & set(spec)):
        raise HitlInvalid(problem=f"{name!r} is set by rules and time-outs alone")
    _check_ways(access, queue, spec)


def _check_ways(access: Access, queue: Queue, spec: dict[str, Any]) -> None:
    """A decision may lead only to queues of the scope into which the caller could publish itself.

    What leads into another scope is judged when it is decided; what leads nowhere is refused.
    """
    for name in publishing.ways_of(spec):
        target = publishing.find_way(access.reader, queue, name)
        verdict = AccessVerdict.HIDDEN
        if target is not None:
            verdict = access.verdict(access.find_scope(target.scope), target, Permission.PUBLISH)
        if verdict is AccessVerdict.HIDDEN:
            raise publishing.leads_nowhere(name)
        if target is not None and target.scope == queue.scope and verdict is not AccessVerdict.ALLOWED:
            raise HitlInvalid(problem=f"it leads to {target.slug!r}, where you may not publish")


def _check_schema(access: Access, queue: Queue, wanted: str, body: Any, answer: AnswerChecks) -> None:
    name, version = checks.split_schema(wanted)
    found = [
        schema
        for schema in access.reader.schemas(access.tenant, queue.scope)
        if schema.name == name and version in (None, schema.version)
    ]
    if not found:
        raise SchemaNotFound(scope=queue.scope, name=name, version=version or "any")
    text = None if isinstance(body, bytes) else jsontext.encode_strict(body, "body")
    needed, validators = NeededChecks(), Validators()
    validators.check(found[-1], text, needed)
    if needed.missing:
        validators.check(found[-1], text, NeededChecks(answer(needed.missing)))


# what is looked for


def _filter(tenant: str, scope: Scope | None, path: str | None, filters: dict[str, Any]) -> MessageFilter:
    for name in filters:
        if name not in FILTERS:
            raise InvalidField(name, "is not something to filter by")
    states = tuple(filters.pop("states", ()) or ())
    for state in states:
        if state not in set(State):
            raise InvalidField("state", f"is {state!r}, must be one of {', '.join(State)}")
    labels = filters.pop("labels", ()) or ()
    return MessageFilter(
        tenant=tenant,
        scope=scope.slug if scope is not None and path is None else None,
        queue=path,
        states=states,
        labels=tuple((str(name), value) for name, value in labels),
        **filters,
    )


def _place_of(access: Access, scope: Scope | None, cursor: str) -> int:
    stored = access.visible_message(scope, cursor) if scope is not None else access.reader.get(cursor)
    if stored is None or stored.row.tenant != access.tenant:
        raise bad_cursor(cursor)
    return stored.row.seq


def _is_broadcast(queue: Queue | None) -> bool:
    return queue is not None and queue.settings.consumer_mode is ConsumerMode.BROADCAST


def _line(reader: Reader, queue: Queue, subscription: str | None) -> tuple[int, int]:
    """What consumers of a queue claim from, and the number of the subscription, if it is one."""
    if not _is_broadcast(queue):
        if subscription is not None:
            raise InvalidField("subscription", f"is not for {queue.path}, whose consumers compete")
        return queue.id, 0
    if subscription is None:
        name = queue.path.removeprefix(f"{checks.DEFAULT_SCOPE}/")
        raise InvalidField("subscription", f"is needed: {name} is a broadcast queue")
    for known in reader.subscriptions(queue.id):
        if known.name == subscription:
            return -known.id, known.id
    raise SubscriptionNotFound(queue=queue.path, subscription=subscription)
