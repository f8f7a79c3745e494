"""Publish: messages in, each durable, in order, deduplicated by key, and within the queue's bounds.

A run takes the publishes of several callers, which are inserted together; a refused one adds nothing.
"""

from collections.abc import Iterable

import msgspec

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
from postroom.kernel.digests import DIGEST, ContentHash, content_digest
from postroom.kernel.ledger import EventDraft
from postroom.kernel.model import (
    ConsumerMode,
    LifecycleState,
    NewMessage,
    Ordering,
    Overflow,
    Queue,
    Receipt,
    Schema,
)
from postroom.kernel.ports import RowFilter, UniformMessages
from postroom.kernel.rows import Content, Row
from postroom.kernel.states import State
from postroom.kernel.transitions import waits
from postroom.kernel.transitions.context import OPEN_STATES, TransitionContext, change_data, earlier
from postroom.kernel.transitions.drafts import (
    Draft,
    delivery_data,
    draft_deliveries,
    draft_message,
    published_data,
    published_data_parts,
    published_details,
)
from postroom.kernel.transitions.settle import CompletionRun

_STATES = {state.value: state for state in State}
DROP_STEP = 100


class PublishTarget(msgspec.Struct, frozen=True):
    """A queue that takes messages, with what every message of it needs. Plain: no limit, no subscribers."""

    queue: Queue
    schema: Schema | None
    plain: bool
    has_rules: bool


def find_target(ctx: TransitionContext, path: str) -> PublishTarget:
    key = (PublishTarget, ctx.tenant, path)
    target = ctx.session.directory.notes.get(key)
    if target is None:
        target = _find_target(ctx, path)
        ctx.session.directory.notes[key] = target
    return target


def _find_target(ctx: TransitionContext, path: str) -> PublishTarget:
    queue = ctx.queue(path)
    check_active(ctx, queue)
    settings = queue.settings
    plain = settings.max_depth is None and settings.consumer_mode is ConsumerMode.COMPETING
    has_rules = not queue.system and ctx.has_rules(queue.scope_id)
    return PublishTarget(queue, find_schema(ctx, queue), plain, has_rules)


def check_active(ctx: TransitionContext, queue: Queue) -> None:
    scope = ctx.session.scope_by_id(queue.scope_id)
    if scope.state is not LifecycleState.ACTIVE:
        raise ScopeClosed(scope=scope.slug, state=scope.state)
    if queue.state is not LifecycleState.ACTIVE:
        raise QueueClosed(queue=queue.path, state=queue.state)


def find_schema(ctx: TransitionContext, queue: Queue) -> Schema | None:
    """The schema that bodies of this queue must match."""
    if queue.settings.schema is None:
        return None
    name, version = checks.split_schema(queue.settings.schema)
    schema = ctx.session.schema(queue.scope_id, name, version)
    if schema is None:
        raise SchemaNotFound(scope=queue.scope, name=name, version=version or "any")
    return schema


class Pattern(msgspec.Struct, frozen=True):
    """What messages of one queue that differ only in their bodies have in common."""

    queue: Queue
    like: NewMessage
    row: Row
    content: Content
    data_parts: tuple[str, str, str]
    content_hash: ContentHash
    state: State

    @property
    def is_timeless(self) -> bool:
        """Whether a later message would differ only in when it came."""
        return self.queue.settings.ordering is Ordering.FIFO and self.row.due_at is None

    def make(self, ids: list[str], bodies: list[bytes | None], now: int) -> UniformMessages:
        row = msgspec.structs.replace(self.row)
        row.correlation_id = self.like.correlation_id or None
        if self.is_timeless:
            row.sort_key = row.created_at = row.updated_at = now
        return UniformMessages(row, msgspec.structs.replace(self.content), ids, bodies)


class PublishRun:
    def __init__(
        self, ctx: TransitionContext, expected: int = 1, before: CompletionRun | None = None
    ) -> None:
        """`expected`: how many messages may come, so that their ids can be made together. `before`: what is
        gathered of other requests, and may decide about messages that are looked at one by one."""
        self._ctx = ctx
        self._expected = expected
        self._before = before
        self._ids: list[str] = []
        # What alike messages come from, what they follow, and those that were gathered.
        self._source: tuple[str, str, str] | None = None
        self._like: NewMessage | None = None
        self._pattern: Pattern | None = None
        self._new_ids: list[str] = []
        self._bodies: list[bytes | None] = []

    def take(self, command: c.Publish | c.PublishLike) -> list[Receipt]:
        """Alike messages are gathered, and enter with the `end`, which must come before anything else."""
        return self._add_like(command) if isinstance(command, c.PublishLike) else self._add(command)

    def end(self) -> None:
        if self._new_ids:
            assert self._pattern is not None
            ids, self._new_ids, bodies, self._bodies = self._new_ids, [], self._bodies, []
            self._admit_like(self._pattern, ids, bodies)
        self._source = None

    def _meet_rules(self, made: list[Receipt]) -> list[Receipt]:
        """Before anybody can claim them, and before the answer, which tells the state they have then."""
        ctx, answers = self._ctx, []
        ctx.hooks.meet_rules(ctx, [receipt.id for receipt in made if receipt.created])
        for receipt in made:
            if receipt.created:
                row = ctx.session.row(receipt.id)
                receipt = Receipt(receipt.id, True, _STATES[row.state] if row else receipt.state)
            answers.append(receipt)
        return answers

    def _add(self, command: c.Publish) -> list[Receipt]:
        self.end()
        if self._before is not None:
            self._before.end()
        ctx = self._ctx
        target = find_target(ctx, command.queue)
        queue, messages, limits = target.queue, command.messages, ctx.limits
        self._check_size(len(messages))
        if len(messages) > 1:
            ctx.session.load_keys((queue.id, key) for key in named_keys(messages))
        is_plain = target.plain
        drafts: list[Draft] = []
        answers: list[tuple[Row, bool]] = []
        fresh: dict[str, Draft] = {}
        try:
            for message_id, message in zip(self._next_ids(len(messages)), messages, strict=True):
                checks.check_message(message, limits)
                body = checks.body_bytes(message, limits)
                key = message.idempotency_key
                if key is not None:
                    first = fresh.get(key) or _find_by_key(ctx, queue, key)
                    if first is not None:
                        _check_same_body(first, body, message, key)
                        answers.append((first[0], False))
                        continue
                draft = self._draft(target, message, message_id, body)
                if message.after:
                    waits.begin_wait(ctx, queue, message, draft[0])
                    is_plain = False
                drafts.append(draft)
                if key is not None:
                    fresh[key] = draft
                answers.append((draft[0], True))
        except PostroomError as error:
            if len(messages) > 1:
                error.of_item(len(answers), checks.shown_key(messages[len(answers)].idempotency_key))
            raise
        if drafts:
            if is_plain:
                self._admit(queue, drafts)
            else:
                self._admit_bounded(queue, drafts)
        # States after all of it: an earlier message may have made room for what came with its repetition.
        made = [Receipt(row.id, created, _STATES[row.state]) for row, created in answers]
        return self._meet_rules(made) if target.has_rules else made

    def _add_like(self, command: c.PublishLike) -> list[Receipt]:
        """As `_add`, quicker: one message is drafted in full, and all others follow it."""
        bodies = command.bodies
        source = (command.tenant, command.queue, command.actor)
        if source != self._source or command.like is not self._like:
            self.end()
            self._pattern = self._find_pattern(command)
            self._source, self._like = source, command.like
        pattern = self._pattern
        if pattern is None:
            return self._add(_one_by_one(command))
        limits, kind = self._ctx.limits, pattern.like.content_type
        if len(bodies) == 1:
            encoded = [checks.encoded(bodies[0], kind, limits)]
        else:
            self._check_size(len(bodies))
            try:
                encoded = [checks.encoded(body, kind, limits) for body in bodies]
            except PostroomError as error:
                error.of_item(checks.first_refused(bodies, kind, limits))
                raise
        ids, state = self._next_ids(len(encoded)), pattern.state
        self._new_ids += ids
        self._bodies += encoded
        return [Receipt(message_id, True, state) for message_id in ids]

    def _find_pattern(self, command: c.PublishLike) -> Pattern | None:
        """What these messages follow; None when each must be looked at by itself, by checks or by rules."""
        ctx = self._ctx
        if command.like is not None:
            return self._new_pattern(command, command.like)
        notes, key = ctx.session.directory.notes, (Pattern, command.tenant, command.queue, command.actor)
        pattern = notes.get(key)
        if pattern is None:
            pattern = self._new_pattern(command, NewMessage(source_id=command.actor))
            if pattern is not None and pattern.is_timeless:
                notes[key] = pattern
        return pattern

    def _new_pattern(self, command: c.PublishLike, like: NewMessage) -> Pattern | None:
        target = find_target(self._ctx, command.queue)
        if (
            not target.plain
            or target.has_rules
            or target.schema is not None
            or like.idempotency_key is not None
            or like.after
        ):
            return None
        checks.check_message(like, self._ctx.limits)
        row, content = self._draft(target, like, "", None)
        parts = published_data_parts(row, content)
        return Pattern(target.queue, like, row, content, parts, ContentHash(content), _STATES[row.state])

    def _admit_like(self, pattern: Pattern, ids: list[str], bodies: list[bytes | None]) -> None:
        assert self._source is not None
        ctx, queue, actor = self._ctx, pattern.queue, self._source[2]
        uniform, changes = pattern.make(ids, bodies, ctx.now), ctx.session.changes
        changes.batches.append(uniform)
        row, append, now = uniform.row, changes.events.append, ctx.now
        tenant, scope, slug, cause = queue.tenant, queue.scope, queue.slug, row.causation_id
        talk, (before, between, after) = row.correlation_id, pattern.data_parts
        digest = pattern.content_hash.digest
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
                    f"{before}{len(body) if body else 0}{between}{digest(message_id, body)}{after}",
                )
            )
        changes.count((queue.id, 0, row.state), len(ids))
        if row.state == "pending":
            ctx.woken[row.line] += len(ids)

    def _check_size(self, count: int) -> None:
        most = self._ctx.limits.publish_batch
        if count > most:
            raise InvalidField("messages", f"has {count}, at most {most} at once")

    def _draft(
        self, target: PublishTarget, message: NewMessage, message_id: str, body: bytes | None
    ) -> Draft:
        ctx, queue = self._ctx, target.queue
        if message.deadline is not None:
            checks.check_deadline(message.deadline, ctx.now)
        if message.after:
            message = waits.name_dependencies(queue, message)
        if target.schema is not None:
            content = body if message.content_type == checks.JSON else None
            ctx.env.validators.check(target.schema, content, ctx.checks)
        if not message.hitl_spec:
            return draft_message(ctx, queue, message_id, message, body)
        message, until = ctx.hooks.prepare_review(ctx, queue, message)
        draft = draft_message(ctx, queue, message_id, message, body)
        if until is not None:
            draft[0].expires_at = earlier(draft[0].expires_at, until)
            draft[0].due_at = earlier(draft[0].due_at, draft[0].expires_at)
        return draft

    def _next_ids(self, count: int) -> list[str]:
        if len(self._ids) < count:
            self._ids = self._ctx.ids.make(max(count, self._expected), self._ctx.now)
        if count == 1:
            return [self._ids.pop()]
        kept = len(self._ids) - count
        taken = self._ids[kept:]
        del self._ids[kept:]
        return taken

    def _admit(self, queue: Queue, drafts: list[Draft]) -> None:
        rows = [row for row, _ in drafts]
        self._ctx.session.add(rows, [content for _, content in drafts])
        self._ctx.admit(rows, queue, [published_data(row, content) for row, content in drafts])

    def _admit_bounded(self, queue: Queue, drafts: list[Draft]) -> None:
        """For queues with a depth limit or subscribers."""
        self._ctx.complete_broadcasts()
        if queue.settings.max_depth is not None:
            self._make_room(queue, drafts)
        dead = [draft for draft in drafts if draft[0].state == State.DEAD]
        alive = [draft for draft in drafts if draft[0].state != State.DEAD]
        if dead:
            self._admit_dead(queue, dead)
        if not alive:
            return
        if queue.settings.consumer_mode is ConsumerMode.BROADCAST:
            self._broadcast(queue, alive)
        else:
            self._admit(queue, alive)

    def _admit_dead(self, queue: Queue, drafts: list[Draft]) -> None:
        ctx = self._ctx
        home = ctx.dead_letters(queue.tenant, queue.scope)
        rows = [row for row, _ in drafts]
        for row in rows:
            row.queue_id = home.id
        ctx.session.add(rows, [content for _, content in drafts])
        details = [
            {"from": queue.slug, "reason": row.failure_reason, DIGEST: content_digest(row.id, content)}
            for row, content in drafts
        ]
        ctx.admit(rows, home, [change_data(row, data) for row, data in zip(rows, details, strict=True)])

    def _make_room(self, queue: Queue, drafts: list[Draft]) -> None:
        ctx, settings = self._ctx, queue.settings
        assert settings.max_depth is not None
        depth = ctx.session.counts(queue.id).waiting
        over = depth + len(drafts) - settings.max_depth
        if over <= 0:
            return
        if settings.overflow_policy is Overflow.REJECT:
            raise QueueFull(queue=queue.path, depth=depth, limit=settings.max_depth)
        if settings.overflow_policy is Overflow.DEAD_LETTER:
            _turn_dead(drafts[-over:], ctx.now, queue)
            return
        oldest = _find_oldest(ctx, queue, over)
        for row in oldest:
            ctx.bury_all(row, f"dropped: the queue {queue.path} was full", "overflow")
        _turn_dead(drafts[: over - len(oldest)], ctx.now, queue)

    def _broadcast(self, queue: Queue, drafts: list[Draft]) -> None:
        ctx = self._ctx
        subscriptions = ctx.session.subscriptions(queue.id)
        rows: list[Row] = []
        contents: list[Content] = []
        texts: list[str] = []
        for row, content in drafts:
            deliveries = draft_deliveries(ctx, row, subscriptions)
            if not deliveries:
                row.state, row.finished_at = State.COMPLETED.value, ctx.now
            else:
                # The deliveries wait, if they must; the original is only the sum of them.
                row.state = State.PENDING.value
            row.due_at = None
            rows += [row, *deliveries]
            contents += [content] * (1 + len(deliveries))
            texts.append(change_data(row, {**published_details(row, content), "deliveries": len(deliveries)}))
            texts += [delivery_data(delivery, content) for delivery in deliveries]
        ctx.session.add(rows, contents)
        ctx.admit(rows, queue, texts)


def publish_one(ctx: TransitionContext, queue: Queue, message: NewMessage) -> Receipt:
    """One message that the kernel itself publishes, in the name of whoever acts."""
    tenant, ctx.tenant = ctx.tenant, queue.tenant
    try:
        command = c.Publish(queue=queue.path, messages=[message], tenant=queue.tenant)
        return PublishRun(ctx).take(command)[0]
    finally:
        ctx.tenant = tenant


def publish(ctx: TransitionContext, command: c.Publish | c.PublishLike) -> list[Receipt]:
    run = PublishRun(ctx)
    receipts = run.take(command)
    run.end()
    return receipts


def _one_by_one(command: c.PublishLike) -> c.Publish:
    like = command.like or NewMessage(source_id=command.actor)
    messages = [msgspec.structs.replace(like, body=body) for body in command.bodies]
    return c.Publish(queue=command.queue, messages=messages, actor=command.actor, tenant=command.tenant)


def _find_oldest(ctx: TransitionContext, queue: Queue, count: int) -> list[Row]:
    """The messages that have waited longest, deliveries not counted."""
    found: list[Row] = []
    after, wanted = 0, RowFilter(queue_ids=(queue.id,), states=OPEN_STATES)
    while len(found) < count and (rows := ctx.session.find(wanted, after=after, limit=DROP_STEP)):
        found += [row for row in rows if row.subscription_id is None and row.state != State.CLAIMED]
        after = rows[-1].seq
    return found[:count]


def _turn_dead(drafts: list[Draft], now: int, queue: Queue) -> None:
    for row, _ in drafts:
        row.state, row.finished_at, row.due_at = State.DEAD.value, now, None
        row.failure_reason = f"refused: the queue {queue.path} was full"
        row.failure_kind = "overflow"
        row.origin_queue_id = queue.id


def named_keys(messages: Iterable[NewMessage]) -> list[str]:
    """The keys they were given; what cannot be one is refused when its message is looked at."""
    keys = (message.idempotency_key for message in messages)
    return [key for key in keys if key is not None and checks.is_text(key)]


def _find_by_key(ctx: TransitionContext, queue: Queue, key: str) -> Draft | None:
    stored = ctx.session.by_key(queue.id, key)
    return None if stored is None else (stored.row, stored.content)


def _check_same_body(first: Draft, body: bytes | None, message: NewMessage, key: str) -> None:
    row, content = first
    same = content.content_type == message.content_type
    if same:
        is_json = message.content_type == checks.JSON
        same = jsontext.same(content.body, body) if is_json else content.body == body
    if not same:
        raise IdempotencyConflict(key=key, message_id=row.id)
