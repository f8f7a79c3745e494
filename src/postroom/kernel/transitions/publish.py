"""Publish: messages in, each durable, in order, deduplicated by key, and within the queue's bounds.

A run gathers the publishes of several callers and inserts them together; a refused one adds nothing.
"""

from functools import lru_cache
from typing import Any

import msgspec

from postroom.clock import micros
from postroom.errors import (
    IdempotencyConflict,
    InvalidField,
    PostroomError,
    QueueClosed,
    QueueFull,
    SchemaNotFound,
    ScopeClosed,
)
from postroom.kernel import checks, jsontext
from postroom.kernel import commands as c
from postroom.kernel.ledger import EventDraft
from postroom.kernel.model import (
    DEAD_LETTER,
    ConsumerMode,
    LifecycleState,
    NewMessage,
    Ordering,
    Overflow,
    Queue,
    Receipt,
    Schema,
    Subscription,
)
from postroom.kernel.ordering import sort_key
from postroom.kernel.reviews.publishing import prepared
from postroom.kernel.rows import Content, Row, Stored
from postroom.kernel.states import State
from postroom.kernel.transitions.context import TransitionContext, earlier, told


class PublishTarget(msgspec.Struct, frozen=True):
    """A queue that takes messages, with what every message of it needs."""

    queue: Queue
    schema: Schema | None
    plain: bool


Draft = tuple[Row, Content]


class UniformBatch:
    """Messages of one queue that differ only in their bodies: one is drafted, the others follow it."""

    __slots__ = (
        "bodies",
        "content",
        "ids",
        "like",
        "path",
        "plain",
        "queue",
        "row",
        "told_after",
        "told_before",
    )

    def __init__(
        self, command: c.PublishLike, queue: Queue, like: NewMessage, row: Row, content: Content
    ) -> None:
        self.path = command.queue
        self.plain = command.like is None
        self.queue = queue
        self.like = like
        self.row = row
        row.correlation_id = like.correlation_id or None
        self.content = content
        self.told_before, self.told_after = _told_around(row, content)
        self.ids: list[str] = []
        self.bodies: list[bytes | None] = []

    def is_timeless(self) -> bool:
        """Whether a later message would differ only in when it came."""
        return self.queue.settings.ordering is Ordering.FIFO and self.row.due_at is None

    def begin_anew(self, now: int) -> None:
        row = self.row
        row.sort_key = row.created_at = row.updated_at = now
        row.correlation_id = self.like.correlation_id
        self.ids, self.bodies = [], []


class PublishRun:
    def __init__(self, ctx: TransitionContext, expected: int = 1) -> None:
        """`expected`: how many messages may come, so that their ids can be made together."""
        self._ctx = ctx
        self._expected = expected
        self._ids: list[str] = []
        self._rows: list[Row] = []
        self._contents: list[Content] = []
        self._alike: UniformBatch | None = None
        self._keys: dict[tuple[int, str], Draft] = {}
        self._places: dict[tuple[str, str], PublishTarget] = {}

    def flush(self) -> None:
        """In the order in which they came, since it is the order in which they are handed out."""
        self._flush_rows()
        if self._alike is not None:
            self._flush_alike(self._alike)
        self._places = {}

    def _flush_rows(self) -> None:
        if self._rows:
            self._ctx.tx.insert(self._rows, self._contents)
            self._rows, self._contents, self._keys = [], [], {}

    def _flush_alike(self, alike: UniformBatch) -> None:
        self._alike = None
        if alike.ids:
            tx, row, count = self._ctx.tx, alike.row, len(alike.ids)
            tx.insert_alike(row, alike.content, alike.ids, alike.bodies)
            tx.count(row.queue_id, 0, row.state, count)
            if row.state == "pending":
                self._ctx.woken[row.line] += count

    def take(self, command: c.Publish | c.PublishLike) -> list[Receipt]:
        made = self.add(command) if isinstance(command, c.Publish) else self.add_like(command)
        return self._meet_rules(command, made) if self._ctx.ruled else made

    def _meet_rules(self, command: c.Publish | c.PublishLike, made: list[Receipt]) -> list[Receipt]:
        """Before anybody can claim them, and before the answer, which tells the state they have then."""
        from postroom.kernel.rules.evaluation import meet
        from postroom.kernel.rules.rule import Trigger

        queue = self._place(command.tenant, command.queue).queue
        if queue.system or queue.scope_id not in self._ctx.ruled:
            return made
        self.flush()
        told = []
        for receipt in made:
            if receipt.created:
                meet(self._ctx, receipt.id, Trigger.PUBLISHED)
                row = self._ctx.tx.row(receipt.id)
                receipt = Receipt(receipt.id, True, _STATES[row.state] if row else receipt.state)
            told.append(receipt)
        return told

    def add(self, command: c.Publish) -> list[Receipt]:
        ctx = self._ctx
        if self._alike is not None:
            self._flush_alike(self._alike)
        place = self._place(command.tenant, command.queue)
        queue, messages = place.queue, command.messages
        self._check_size(len(messages))
        drafts: list[Draft] = []
        answers: list[tuple[Row, bool]] = []
        fresh: dict[tuple[int, str], Draft] = {}
        limits = ctx.limits
        try:
            for message_id, message in zip(self._next_ids(len(messages)), messages, strict=True):
                checks.check_message(message, limits)
                body = checks.body_bytes(message, limits)
                key = message.idempotency_key
                if key is not None:
                    first = self._known(queue, key, fresh)
                    if first is not None:
                        _same_body(first, body, message, key)
                        answers.append((first[0], False))
                        continue
                draft = self._drafted(place, message, message_id, body)
                drafts.append(draft)
                if key is not None:
                    fresh[(queue.id, key)] = draft
                answers.append((draft[0], True))
        except PostroomError as error:
            if len(messages) > 1:
                error.of_item(len(answers), checks.shown_key(messages[len(answers)].idempotency_key))
            raise
        if drafts:
            if place.plain:
                self._admit(queue, drafts)
            else:
                self._admit_bounded(queue, drafts)
            self._keys.update(fresh)
        return [
            Receipt(row.id, created, _STATES[row.state if created else self._state_now(place, row)])
            for row, created in answers
        ]

    def _state_now(self, place: PublishTarget, row: Row) -> str:
        """An earlier message may have had to make room for one that came with its repetition."""
        now = None if place.plain else self._ctx.tx.row(row.id)
        return row.state if now is None else now.state

    def add_like(self, command: c.PublishLike) -> list[Receipt]:
        """As `add`, quicker: one message is drafted in full, and all others follow it."""
        bodies, alike = command.bodies, self._alike_for(command)
        if alike is None:
            return self.add(_one_by_one(command))
        limits, kind = self._ctx.limits, alike.like.content_type
        if len(bodies) == 1:
            encoded = [checks.encoded(bodies[0], kind, limits)]
        else:
            self._check_size(len(bodies))
            try:
                encoded = [checks.encoded(body, kind, limits) for body in bodies]
            except PostroomError as error:
                error.of_item(checks.first_refused(bodies, kind, limits))
                raise
        ids = self._next_ids(len(encoded))
        alike.ids += ids
        alike.bodies += encoded
        return self._tell_alike(alike, ids, encoded)

    def _alike_for(self, command: c.PublishLike) -> UniformBatch | None:
        """What these messages follow; None when each must be looked at by itself."""
        alike, like, path = self._alike, command.like, command.queue
        if alike is not None and alike.path == path and alike.queue.tenant == command.tenant:
            same = (
                alike.plain and alike.like.source_id == command.actor if like is None else alike.like is like
            )
            if same:
                return alike
        if alike is not None or self._rows:
            self.flush()
        known = self._ctx.env.known(self._ctx.tx) if like is None else None
        key = (UniformBatch, command.tenant, path, command.actor)
        if known is not None and (alike := known.get(key)) is not None:
            alike.begin_anew(self._ctx.now)
        else:
            alike = self._new_alike(command)
            if known is not None and alike is not None and alike.is_timeless():
                known[key] = alike
        self._alike = alike
        return alike

    def _new_alike(self, command: c.PublishLike) -> UniformBatch | None:
        place = self._place(command.tenant, command.queue)
        like = command.like or NewMessage(source_id=command.actor)
        if not place.plain or place.schema is not None or like.idempotency_key is not None:
            return None
        checks.check_message(like, self._ctx.limits)
        return UniformBatch(command, place.queue, like, *self._drafted(place, like, "", None))

    def _tell_alike(self, alike: UniformBatch, ids: list[str], bodies: list[bytes | None]) -> list[Receipt]:
        ctx, row, queue = self._ctx, alike.row, alike.queue
        append, now, actor, state = ctx.tx.append, ctx.now, ctx.actor, _STATES[row.state]
        tenant, scope, slug, cause = queue.tenant, queue.scope, queue.slug, row.causation_id
        talk, before, after = row.correlation_id, alike.told_before, alike.told_after
        receipts = []
        for message_id, body in zip(ids, bodies, strict=True):
            append(
                EventDraft(
                    now,
                    "message.published",
                    tenant,
                    scope,
                    slug,
                    message_id,
                    talk or message_id,
                    cause,
                    actor,
                    f"{before}{len(body) if body else 0}{after}",
                )
            )
            receipts.append(Receipt(message_id, True, state))
        return receipts

    def _place(self, tenant: str, path: str) -> PublishTarget:
        place = self._places.get((tenant, path))
        if place is None:
            place = self._places[(tenant, path)] = _open_place(self._ctx, path)
        return place

    def _check_size(self, count: int) -> None:
        most = self._ctx.limits.publish_batch
        if count > most:
            raise InvalidField("messages", f"has {count}, at most {most} at once")

    def _drafted(
        self, place: PublishTarget, message: NewMessage, message_id: str, body: bytes | None
    ) -> Draft:
        ctx, queue = self._ctx, place.queue
        if message.deadline is not None:
            checks.check_deadline(message.deadline, ctx.now)
        if place.schema is not None:
            content = jsontext.decode_any(body) if message.content_type == checks.JSON else None
            ctx.env.validators.check(place.schema, content)
        if message.hitl_spec:
            message, until = prepared(ctx.tx, queue, message, ctx.now)
            draft = _draft(ctx, queue, message_id, message, body)
            if until is not None:
                draft[0].expires_at = earlier(draft[0].expires_at, until)
                draft[0].due_at = earlier(draft[0].due_at, draft[0].expires_at)
            return draft
        return _draft(ctx, queue, message_id, message, body)

    def _next_ids(self, count: int) -> list[str]:
        if len(self._ids) < count:
            self._ids = self._ctx.ids.make(max(count, self._expected), self._ctx.now)
        if count == 1:
            return [self._ids.pop()]
        kept = len(self._ids) - count
        taken = self._ids[kept:]
        del self._ids[kept:]
        return taken

    def _known(self, queue: Queue, key: str, fresh: dict[tuple[int, str], Draft]) -> Draft | None:
        place = (queue.id, key)
        pair = fresh.get(place) or self._keys.get(place)
        if pair is None:
            stored = self._ctx.tx.by_key(queue.id, key) or self._moved(queue, key)
            pair = (stored.row, stored.content) if stored else None
        return pair

    def _moved(self, queue: Queue, key: str) -> Stored | None:
        """The message published here with this key that a rule has moved elsewhere."""
        tx = self._ctx.tx
        message_id = tx.kept_key(queue.id, key)
        if message_id is None:
            return None
        row = tx.row(message_id)
        return Stored(row, tx.content(row)) if row is not None else tx.archived(message_id)

    def _admit(self, queue: Queue, drafts: list[Draft]) -> None:
        rows = [row for row, _ in drafts]
        self._rows += rows
        self._contents += [content for _, content in drafts]
        self._ctx.admit(rows, queue, (_told(row, content) for row, content in drafts))

    def _admit_bounded(self, queue: Queue, drafts: list[Draft]) -> None:
        """For queues with a depth limit or subscribers."""
        if queue.settings.max_depth is not None:
            self._make_room(queue, drafts)
        dead = [draft for draft in drafts if draft[0].state == State.DEAD]
        alive = [draft for draft in drafts if draft[0].state != State.DEAD]
        self._admit_dead(queue, dead)
        if queue.settings.consumer_mode is ConsumerMode.BROADCAST:
            self._broadcast(queue, alive)
        else:
            self._admit(queue, alive)

    def _admit_dead(self, queue: Queue, drafts: list[Draft]) -> None:
        if not drafts:
            return
        home = self._ctx.tx.queue(queue.tenant, queue.scope, DEAD_LETTER)
        assert home is not None, "every scope has its dead letters"
        for row, content in drafts:
            row.queue_id = home.id
            self._rows.append(row)
            self._contents.append(content)
        texts = [told(row, **{"from": queue.slug, "reason": row.failure_reason}) for row, _ in drafts]
        self._ctx.admit([row for row, _ in drafts], home, texts)

    def _make_room(self, queue: Queue, drafts: list[Draft]) -> None:
        ctx, settings = self._ctx, queue.settings
        assert settings.max_depth is not None
        depth = ctx.tx.counts(queue.id).waiting
        over = depth + len(drafts) - settings.max_depth
        if over <= 0:
            return
        if settings.overflow_policy is Overflow.REJECT:
            raise QueueFull(queue=queue.path, depth=depth, limit=settings.max_depth)
        if settings.overflow_policy is Overflow.DEAD_LETTER:
            _turn_dead(drafts[-over:], ctx.now, queue)
            return
        self.flush()
        dropped = 0
        for row in _oldest(ctx, queue, over):
            ctx.bury_all(row, f"dropped: the queue {queue.path} was full", "overflow")
            dropped += 1
        if dropped < over:
            _turn_dead(drafts[: over - dropped], ctx.now, queue)

    def _broadcast(self, queue: Queue, drafts: list[Draft]) -> None:
        ctx = self._ctx
        subscriptions = ctx.tx.subscriptions(queue.id)
        rows: list[Row] = []
        texts: list[str] = []
        for row, content in drafts:
            deliveries = deliveries_of(ctx, row, subscriptions)
            if not deliveries:
                row.state, row.finished_at = State.COMPLETED.value, ctx.now
            else:
                # The deliveries wait, if they must; the original is only the sum of them.
                row.state = State.PENDING.value
            row.due_at = None
            rows += [row, *deliveries]
            texts.append(told(row, **_details(row, content), deliveries=len(deliveries)))
            texts += [told(delivery, parent=row.id) for delivery in deliveries]
            self._contents += [content] * (1 + len(deliveries))
        self._rows += rows
        ctx.admit(rows, queue, texts)


def _one_by_one(command: c.PublishLike) -> c.Publish:
    like = command.like or NewMessage(source_id=command.actor)
    messages = [msgspec.structs.replace(like, body=body) for body in command.bodies]
    return c.Publish(queue=command.queue, messages=messages, actor=command.actor, tenant=command.tenant)


_STATES = {state.value: state for state in State}
DROP_STEP = 100


def _oldest(ctx: TransitionContext, queue: Queue, count: int) -> list[Row]:
    """The messages that have waited longest, deliveries not counted."""
    found: list[Row] = []
    after = 0
    while len(found) < count and (rows := ctx.tx.open_rows(queue.id, after, DROP_STEP)):
        found += [row for row in rows if row.subscription_id is None and row.state != State.CLAIMED]
        after = rows[-1].seq
    return found[:count]


def _turn_dead(drafts: list[Draft], now: int, queue: Queue) -> None:
    for row, _ in drafts:
        row.state, row.finished_at, row.due_at = State.DEAD.value, now, None
        row.failure_reason = f"refused: the queue {queue.path} was full"
        row.failure_kind = "overflow"
        row.origin_queue_id = queue.id


def deliveries_of(ctx: TransitionContext, original: Row, subscriptions: list[Subscription]) -> list[Row]:
    """One row per subscriber, each with its own progress, retries and end."""
    visible = original.visible_at
    if visible is not None and visible <= ctx.now:
        visible = None
    return [
        Row(
            id=message_id,
            tenant=original.tenant,
            scope_id=original.scope_id,
            queue_id=original.queue_id,
            line=-subscription.id,
            subscription_id=subscription.id,
            state=State.PENDING.value if visible is None else State.DELAYED.value,
            sort_key=original.sort_key,
            due_at=earlier(visible, original.expires_at),
            message_type=original.message_type,
            priority_tier=original.priority_tier,
            priority_score=original.priority_score,
            created_at=ctx.now,
            updated_at=ctx.now,
            expires_at=original.expires_at,
            visible_at=visible,
            correlation_id=original.correlation_id,
            causation_id=original.id,
            parent_id=original.id,
            hop=original.hop,
            idempotency_key=None,
        )
        for message_id, subscription in zip(
            ctx.ids.make(len(subscriptions), ctx.now), subscriptions, strict=True
        )
    ]


def _open_place(ctx: TransitionContext, path: str) -> PublishTarget:
    known = ctx.env.known(ctx.tx)
    if known is None:
        return _find_place(ctx, path)
    key = (PublishTarget, ctx.tenant, path)
    place = known.get(key)
    if place is None:
        place = _find_place(ctx, path)
        if place.schema is None:
            # Schemas come and go without the places changing.
            known[key] = place
    return place


def _find_place(ctx: TransitionContext, path: str) -> PublishTarget:
    queue = ctx.queue(path)
    scope = ctx.tx.scope_by_id(queue.scope_id)
    if scope.state is not LifecycleState.ACTIVE:
        raise ScopeClosed(scope=scope.slug, state=scope.state)
    if queue.state is not LifecycleState.ACTIVE:
        raise QueueClosed(queue=queue.path, state=queue.state)
    settings = queue.settings
    plain = settings.max_depth is None and settings.consumer_mode is ConsumerMode.COMPETING
    if settings.schema is None:
        return PublishTarget(queue, None, plain)
    name, version = checks.split_schema(settings.schema)
    schema = ctx.tx.schema(queue.scope_id, name, version)
    if schema is None:
        raise SchemaNotFound(scope=queue.scope, name=name, version=version or "any")
    return PublishTarget(queue, schema, plain)


def _same_body(first: Draft, body: bytes | None, message: NewMessage, key: str) -> None:
    row, content = first
    same = content.content_type == message.content_type
    if same:
        is_json = message.content_type == checks.JSON
        same = jsontext.same(content.body, body) if is_json else content.body == body
    if not same:
        raise IdempotencyConflict(key=key, message_id=row.id)


def _draft(
    ctx: TransitionContext, queue: Queue, message_id: str, message: NewMessage, body: bytes | None
) -> Draft:
    now, limits, settings = ctx.now, ctx.limits, queue.settings
    ttl = message.ttl_s if message.ttl_s is not None else settings.default_ttl_s
    expires = now + micros(ttl) if ttl is not None else None
    deadline, delay = message.deadline, message.delay_until
    if message.delay_s is not None:
        delay = now + micros(message.delay_s)
    if deadline is not None and (expires is None or deadline < expires):
        expires = deadline
    if delay is not None and delay <= now:
        delay = None
    state = "pending" if delay is None else "delayed"
    row = Row(
        message_id,
        queue.tenant,
        queue.scope_id,
        queue.id,
        queue.id,
        None,
        state,
        sort_key(
            settings.ordering,
            entered_at=now,
            tier=message.priority_tier,
            score=message.priority_score,
            deadline=deadline,
        ),
        earlier(delay, expires),
        message.message_type,
        message.priority_tier,
        message.priority_score,
        now,
        now,
        expires,
        delay,
        message.correlation_id or message_id,
        message.causation_id,
        message.parent_id,
        message.hop,
        message.idempotency_key,
    )
    content = Content(
        message.content_type,
        body,
        checks.small_json("labels", message.labels, limits.metadata_bytes) if message.labels else None,
        message.ttl_s,
        deadline,
        delay,
        checks.small_json("hitl_spec", message.hitl_spec, limits.body_bytes) if message.hitl_spec else None,
        message.source_type,
        message.source_id,
        message.channel,
        message.sender,
        message.sender_id,
        message.agent,
        message.from_agent,
        checks.small_json("files", message.files, limits.metadata_bytes, list) if message.files else None,
        checks.small_json("metadata", message.metadata, limits.metadata_bytes) if message.metadata else None,
    )
    return row, content


def _told(row: Row, content: Content) -> str:
    """The data of a published message's event; for plain messages cut from a text made before."""
    if _has_more_to_tell(row, content):
        return told(row, **_details(row, content))
    before, after = _plainly_told(row.message_type, row.priority_tier, row.state)
    return f"{before}{len(content.body) if content.body else 0}{after}"


def _told_around(row: Row, empty: Content) -> tuple[str, str]:
    """The same for any body: what comes before and after its size."""
    if _has_more_to_tell(row, empty):
        return _around_size(told(row, **_details(row, empty)))
    return _plainly_told(row.message_type, row.priority_tier, row.state)


def _has_more_to_tell(row: Row, content: Content) -> bool:
    return bool(row.hop or row.parent_id or content.agent is not None or content.channel is not None)


@lru_cache(maxsize=1000)
def _plainly_told(kind: str, tier: str, state: str) -> tuple[str, str]:
    return _around_size(
        jsontext.text({"type": kind, "tier": tier, "bytes": 0, "state": state, "attempts": 0})
    )


def _around_size(text: str) -> tuple[str, str]:
    before, mark, after = text.partition('"bytes":0')
    return before + mark[:-1], after


def _details(row: Row, content: Content) -> dict[str, Any]:
    data: dict[str, Any] = {
        "type": row.message_type,
        "tier": row.priority_tier,
        "bytes": len(content.body) if content.body else 0,
    }
    if row.hop:
        data["hop"] = row.hop
    if row.parent_id is not None:
        data["parent"] = row.parent_id
    if content.agent is not None:
        data["agent"] = content.agent
    if content.channel is not None:
        data["channel"] = content.channel
    return data
