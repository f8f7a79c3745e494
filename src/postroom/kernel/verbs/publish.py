"""Publish: messages in, each durable, in order, deduplicated by key, and within the queue's bounds.

A run gathers the publishes of several callers and inserts them together; a refused one adds nothing.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

import msgspec

from postroom.clock import micros
from postroom.errors import (
    IdempotencyConflict,
    InvalidField,
    QueueClosed,
    QueueFull,
    SchemaNotFound,
    ScopeClosed,
)
from postroom.kernel import checks, jsontext
from postroom.kernel import commands as c
from postroom.kernel.desk import Desk, earlier, told
from postroom.kernel.model import (
    DEAD_LETTER,
    ConsumerMode,
    NewMessage,
    Overflow,
    PlaceState,
    Queue,
    Receipt,
    Schema,
    Subscription,
)
from postroom.kernel.ordering import sort_key
from postroom.kernel.rows import ROW_FIELDS, Content, Row
from postroom.kernel.states import State


class Place(msgspec.Struct, frozen=True):
    """A queue that takes messages, with what every message of it needs."""

    queue: Queue
    schema: Schema | None
    plain: bool


Draft = tuple[Row, Content]

_astuple = msgspec.structs.astuple
_make_row = cast("Callable[..., Row]", Row)
_make_content = cast("Callable[..., Content]", Content)
_CORRELATION = ROW_FIELDS.index("correlation_id")


class PublishRun:
    def __init__(self, desk: Desk, expected: int = 1) -> None:
        """`expected`: how many messages may come, so that their ids can be made together."""
        self._desk = desk
        self._expected = expected
        self._ids: list[str] = []
        self._rows: list[Row] = []
        self._contents: list[Content] = []
        self._keys: dict[tuple[int, str], Draft] = {}
        self._places: dict[tuple[str, str], Place] = {}

    def flush(self) -> None:
        if self._rows:
            self._desk.tx.insert(self._rows, self._contents)
            self._rows, self._contents, self._keys = [], [], {}
        self._places = {}

    def take(self, command: c.Publish | c.PublishLike) -> list[Receipt]:
        return self.add(command) if isinstance(command, c.Publish) else self.add_like(command)

    def add(self, command: c.Publish) -> list[Receipt]:
        desk = self._desk
        place = self._place(command.tenant, command.queue)
        queue, messages = place.queue, command.messages
        self._check_size(len(messages))
        if len(messages) == 1 and place.plain and messages[0].idempotency_key is None:
            return [self._add_one(place, messages[0])]
        drafts: list[Draft] = []
        answers: list[tuple[Row, bool]] = []
        fresh: dict[tuple[int, str], Draft] = {}
        limits = desk.limits
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

    def _state_now(self, place: Place, row: Row) -> str:
        """An earlier message may have had to make room for one that came with its repetition."""
        now = None if place.plain else self._desk.tx.row(row.id)
        return row.state if now is None else now.state

    def add_like(self, command: c.PublishLike) -> list[Receipt]:
        """As `add`, quicker: the first message is made in full, and the others after its pattern."""
        desk, like, bodies = self._desk, command.like, command.bodies
        place = self._place(command.tenant, command.queue)
        self._check_size(len(bodies))
        if not bodies or not place.plain or place.schema is not None or like.idempotency_key is not None:
            messages = [msgspec.structs.replace(like, body=body) for body in bodies]
            return self.add(
                c.Publish(queue=command.queue, messages=messages, actor=command.actor, tenant=command.tenant)
            )
        checks.check_message(like, desk.limits)
        pattern = self._drafted(place, like, "", None)
        ids = self._next_ids(len(bodies))
        of_row, of_content = _astuple(pattern[0]), _astuple(pattern[1])
        before, after = of_row[1:_CORRELATION], of_row[_CORRELATION + 1 :]
        kind, talk, rest, limits = like.content_type, like.correlation_id, of_content[2:], desk.limits
        drafts = [
            (
                _make_row(*(message_id, *before, talk or message_id, *after)),
                _make_content(*(kind, checks.encoded(body, kind, limits), *rest)),
            )
            for message_id, body in zip(ids, bodies, strict=True)
        ]
        self._admit(place.queue, drafts)
        return [Receipt(row.id, True, _STATES[row.state]) for row, _ in drafts]

    def _place(self, tenant: str, path: str) -> Place:
        place = self._places.get((tenant, path))
        if place is None:
            place = self._places[(tenant, path)] = _open_place(self._desk, path)
        return place

    def _check_size(self, count: int) -> None:
        most = self._desk.limits.publish_batch
        if count > most:
            raise InvalidField("messages", f"has {count}, at most {most} at once")

    def _add_one(self, place: Place, message: NewMessage) -> Receipt:
        """The same as above for what is asked for most: one message without a key to a plain queue."""
        checks.check_message(message, self._desk.limits)
        body = checks.body_bytes(message, self._desk.limits)
        row, content = self._drafted(place, message, self._next_ids(1)[0], body)
        self._rows.append(row)
        self._contents.append(content)
        self._desk.admit([row], place.queue, [_told(row, content)])
        return Receipt(row.id, True, _STATES[row.state])

    def _drafted(self, place: Place, message: NewMessage, message_id: str, body: bytes | None) -> Draft:
        desk, queue = self._desk, place.queue
        if message.deadline is not None:
            checks.check_deadline(message.deadline, desk.now)
        if place.schema is not None:
            content = jsontext.decode_any(body) if message.content_type == checks.JSON else None
            desk.kit.validators.check(place.schema, content)
        return _draft(desk, queue, message_id, message, body)

    def _next_ids(self, count: int) -> list[str]:
        if len(self._ids) < count:
            self._ids = self._desk.ids.make(max(count, self._expected), self._desk.now)
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
            stored = self._desk.tx.by_key(queue.id, key)
            pair = (stored.row, stored.content) if stored else None
        return pair

    def _admit(self, queue: Queue, drafts: list[Draft]) -> None:
        rows = [row for row, _ in drafts]
        self._rows += rows
        self._contents += [content for _, content in drafts]
        self._desk.admit(rows, queue, (_told(row, content) for row, content in drafts))

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
        home = self._desk.tx.queue(queue.tenant, queue.scope, DEAD_LETTER)
        assert home is not None, "every scope has its dead letters"
        for row, content in drafts:
            row.queue_id = home.id
            self._rows.append(row)
            self._contents.append(content)
        texts = [told(row, **{"from": queue.slug, "reason": row.failure_reason}) for row, _ in drafts]
        self._desk.admit([row for row, _ in drafts], home, texts)

    def _make_room(self, queue: Queue, drafts: list[Draft]) -> None:
        desk, settings = self._desk, queue.settings
        assert settings.max_depth is not None
        depth = desk.tx.counts(queue.id).waiting
        over = depth + len(drafts) - settings.max_depth
        if over <= 0:
            return
        if settings.overflow_policy is Overflow.REJECT:
            raise QueueFull(queue=queue.path, depth=depth, limit=settings.max_depth)
        if settings.overflow_policy is Overflow.DEAD_LETTER:
            _turn_dead(drafts[-over:], desk.now, queue)
            return
        self.flush()
        dropped = 0
        for row in _oldest(desk, queue, over):
            desk.bury_all(row, f"dropped: the queue {queue.path} was full", "overflow")
            dropped += 1
        if dropped < over:
            _turn_dead(drafts[: over - dropped], desk.now, queue)

    def _broadcast(self, queue: Queue, drafts: list[Draft]) -> None:
        desk = self._desk
        subscriptions = desk.tx.subscriptions(queue.id)
        rows: list[Row] = []
        texts: list[str] = []
        for row, content in drafts:
            deliveries = deliveries_of(desk, row, subscriptions)
            if not deliveries:
                row.state, row.finished_at = State.COMPLETED.value, desk.now
            else:
                # The deliveries wait, if they must; the original is only the sum of them.
                row.state = State.PENDING.value
            row.due_at = None
            rows += [row, *deliveries]
            texts.append(told(row, **_details(row, content), deliveries=len(deliveries)))
            texts += [told(delivery, parent=row.id) for delivery in deliveries]
            self._contents += [content] * (1 + len(deliveries))
        self._rows += rows
        desk.admit(rows, queue, texts)


_STATES = {state.value: state for state in State}
DROP_STEP = 100


def _oldest(desk: Desk, queue: Queue, count: int) -> list[Row]:
    """The messages that have waited longest, deliveries not counted."""
    found: list[Row] = []
    after = 0
    while len(found) < count and (rows := desk.tx.open_rows(queue.id, after, DROP_STEP)):
        found += [row for row in rows if row.subscription_id is None and row.state != State.CLAIMED]
        after = rows[-1].seq
    return found[:count]


def _turn_dead(drafts: list[Draft], now: int, queue: Queue) -> None:
    for row, _ in drafts:
        row.state, row.finished_at, row.due_at = State.DEAD.value, now, None
        row.failure_reason = f"refused: the queue {queue.path} was full"
        row.failure_kind = "overflow"
        row.origin_queue_id = queue.id


def deliveries_of(desk: Desk, original: Row, subscriptions: list[Subscription]) -> list[Row]:
    """One row per subscriber, each with its own progress, retries and end."""
    visible = original.visible_at
    if visible is not None and visible <= desk.now:
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
            created_at=desk.now,
            updated_at=desk.now,
            expires_at=original.expires_at,
            visible_at=visible,
            correlation_id=original.correlation_id,
            causation_id=original.id,
            parent_id=original.id,
            hop=original.hop,
            idempotency_key=None,
        )
        for message_id, subscription in zip(
            desk.ids.make(len(subscriptions), desk.now), subscriptions, strict=True
        )
    ]


def _open_place(desk: Desk, path: str) -> Place:
    known = desk.kit.known(desk.tx)
    if known is None:
        return _find_place(desk, path)
    key = (Place, desk.tenant, path)
    place = known.get(key)
    if place is None:
        place = _find_place(desk, path)
        if place.schema is None:
            # Schemas come and go without the places changing.
            known[key] = place
    return place


def _find_place(desk: Desk, path: str) -> Place:
    queue = desk.queue(path)
    scope = desk.tx.scope_by_id(queue.scope_id)
    if scope.state is not PlaceState.ACTIVE:
        raise ScopeClosed(scope=scope.slug, state=scope.state)
    if queue.state is not PlaceState.ACTIVE:
        raise QueueClosed(queue=queue.path, state=queue.state)
    settings = queue.settings
    plain = settings.max_depth is None and settings.consumer_mode is ConsumerMode.COMPETING
    if settings.schema is None:
        return Place(queue, None, plain)
    name, version = checks.split_schema(settings.schema)
    schema = desk.tx.schema(queue.scope_id, name, version)
    if schema is None:
        raise SchemaNotFound(scope=queue.scope, name=name, version=version or "any")
    return Place(queue, schema, plain)


def _same_body(first: Draft, body: bytes | None, message: NewMessage, key: str) -> None:
    row, content = first
    same = content.content_type == message.content_type
    if same:
        is_json = message.content_type == checks.JSON
        same = jsontext.same(content.body, body) if is_json else content.body == body
    if not same:
        raise IdempotencyConflict(key=key, message_id=row.id)


def _draft(desk: Desk, queue: Queue, message_id: str, message: NewMessage, body: bytes | None) -> Draft:
    now, limits, settings = desk.now, desk.limits, queue.settings
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
    if row.hop or row.parent_id is not None or content.agent is not None or content.channel is not None:
        return told(row, **_details(row, content))
    before, after = _plainly_told(row.message_type, row.priority_tier, row.state)
    return f"{before}{len(content.body) if content.body else 0}{after}"


@lru_cache(maxsize=1000)
def _plainly_told(kind: str, tier: str, state: str) -> tuple[str, str]:
    text = jsontext.text({"type": kind, "tier": tier, "bytes": 0, "state": state, "attempts": 0})
    before, mark, after = text.partition('"bytes":')
    return before + mark, after[1:]


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
