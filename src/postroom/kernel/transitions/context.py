"""The working context of one transaction: the time, who asks, and the one way a message changes state.

Every change goes through `move` (or `admit` at publish, and `hand_out` and `complete`, which are `move` for
what happens most), so each is checked against the state table, counted, and recorded by exactly one event.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol

from postroom.clock import Clock
from postroom.errors import MessageNotFound, QueueNotFound, ScopeNotFound, SubscriptionNotFound
from postroom.ids import Ids
from postroom.kernel import checks, jsontext
from postroom.kernel.costly_checks import NO_ANSWERS, Answers, NeededChecks
from postroom.kernel.digests import DIGEST, RESULT_DIGEST, content_digest, result_digest
from postroom.kernel.directory import Directory
from postroom.kernel.facts import AWAITED_SCOPE
from postroom.kernel.held_rows import HeldRows
from postroom.kernel.ledger import EventDraft
from postroom.kernel.limits import Limits
from postroom.kernel.model import (
    DEAD_LETTER,
    ConsumerMode,
    LifecycleState,
    NewMessage,
    Ordering,
    Queue,
    Scope,
    Subscription,
)
from postroom.kernel.ordering import sort_key
from postroom.kernel.ports import FactFilter, RowFilter, Shape
from postroom.kernel.retention import Retention
from postroom.kernel.rows import Content, Row
from postroom.kernel.rule_budget import RuleBudget
from postroom.kernel.schemas import Validators
from postroom.kernel.session import Session
from postroom.kernel.states import OPEN, TERMINAL, Change, State, allowed

# Message, trigger, queue, attempts.
Triggered = tuple[str, str, int, int]
TRIGGERS = {
    Change.COMPLETED: "message_completed",
    Change.FAILED: "message_failed",
    Change.DEAD_LETTERED: "message_dead_lettered",
    Change.EXPIRED: "message_expired",
}
# Why a message that a person was to decide about is a dead letter.
NOT_ASKED = "review_not_asked"
UNREVIEWED = frozenset({NOT_ASKED, "review_timeout", "review_cancelled", "review_not_followed"})
OPEN_STATES = tuple(sorted(OPEN))
HANDING_OUT = (LifecycleState.ACTIVE, LifecycleState.DRAINING)
_PLACE = attrgetter("queue_id", "subscription_id")


class KernelEnvironment:
    """What outlives a transaction: ids, limits, randomness, compiled schemas, and what is remembered."""

    def __init__(
        self,
        ids: Ids,
        limits: Limits,
        retention: Retention,
        rng: random.Random,
        clock: Clock | None = None,
        held: HeldRows | None = None,
    ) -> None:
        """The time of a transaction is its store's; `clock` is this process's own, to compare. `held` is for
        stores that compare the tokens of completions."""
        self.ids = ids
        self.clock = clock
        self.limits = limits
        self.retention = retention
        self.rng = rng
        self.held = held
        self.validators = Validators()
        self._directory = (-1, Directory())

    def directory(self, version: int) -> Directory:
        """What is remembered of this version; of one that others have left behind, nothing."""
        known, directory = self._directory
        if known == version:
            return directory
        directory = Directory()
        if version > known:
            self._directory = (version, directory)
        return directory


class Hooks(Protocol):
    """What rules and reviews do when messages change: they stand on the transitions, and are called here."""

    def rules_of(self, ctx: "TransitionContext", scope_id: int) -> Sequence[Any]:
        """The rules of a scope in the order in which they are tried."""
        ...

    def meet_rules(self, ctx: "TransitionContext", message_ids: Sequence[str]) -> None:
        """Messages were published where there are rules."""
        ...

    def meet_triggered(self, ctx: "TransitionContext") -> None:
        """Everything that was triggered so far, and what that triggers in turn."""
        ...

    def prepare_review(
        self, ctx: "TransitionContext", queue: Queue, message: NewMessage
    ) -> tuple[NewMessage, int | None]:
        """A message that asks a person, with its whole spec, and when its time is over."""
        ...

    def is_review(self, ctx: "TransitionContext", row: Row) -> bool:
        """Whether it asks a person in our way."""
        ...

    def time_out_review(self, ctx: "TransitionContext", row: Row) -> bool:
        """Whether the end of a message's time was dealt with; else it simply expires."""
        ...

    def give_up_review(self, ctx: "TransitionContext", row: Row, reason: str, answer: Any = None) -> None:
        """A message has ended: if it was a review, nobody will answer it."""
        ...


class TransitionContext:
    actor = "system"
    tenant = "default"
    # What rules may still make of the command that is carried out; none before rules are met.
    rule_budget: RuleBudget | None = None

    def __init__(
        self, session: Session, env: KernelEnvironment, hooks: Hooks, answers: Answers = NO_ANSWERS
    ) -> None:
        self.session = session
        self.checks = NeededChecks(answers)
        self.env = env
        self.hooks = hooks
        self.limits = env.limits
        self.ids = env.ids
        self.rng = env.rng
        self.now = session.tx.now
        self.woken: defaultdict[int, int] = defaultdict(int)
        self.triggered: list[Triggered] = []
        # Messages that have ended where others may wait for them.
        self.awaited: list[str] = []
        # Broadcast messages of which a delivery has ended, and who ended it.
        self.ended: dict[str, str] = {}

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo everything since its start when its block raises, also what rules would have met."""
        triggered, awaited, ended = len(self.triggered), len(self.awaited), dict(self.ended)
        try:
            with self.session.savepoint():
                yield
        except BaseException:
            del self.triggered[triggered:]
            del self.awaited[awaited:]
            self.ended = ended
            raise

    # scopes and queues

    def scope(self, slug: str) -> Scope:
        scope = self.session.scope(self.tenant, slug)
        if scope is None:
            raise ScopeNotFound(scope=slug)
        return scope

    def queue(self, path: str) -> Queue:
        scope, slug = checks.split_path(path)
        queue = self.session.queue(self.tenant, scope, slug)
        if queue is None:
            self.scope(scope)
            raise QueueNotFound(queue=f"{scope}/{slug}")
        return queue

    def dead_letters(self, tenant: str, scope: str) -> Queue:
        queue = self.session.queue(tenant, scope, DEAD_LETTER)
        assert queue is not None, "every scope has its dead letters"
        return queue

    def subscription(self, queue: Queue, name: str) -> Subscription:
        for subscription in self.session.subscriptions(queue.id):
            if subscription.name == name:
                return subscription
        raise SubscriptionNotFound(queue=queue.path, subscription=name)

    def is_open(self, queue: Queue) -> bool:
        """Whether consumers may claim: a draining queue hands out, a paused or archived one does not."""
        return queue.state in HANDING_OUT and self.session.scope_by_id(queue.scope_id).state in HANDING_OUT

    def has_rules(self, scope_id: int) -> bool:
        known = self.session.directory.has_rules
        found = known.get(scope_id)
        if found is None:
            found = known[scope_id] = bool(self.hooks.rules_of(self, scope_id))
        return found

    def awaited_scopes(self) -> set[int]:
        """Where somebody waited, or waits, for messages."""
        found = self.session.directory.notes.get(AWAITED_SCOPE)
        if found is None:
            found = {int(fact.key) for fact in self.session.scan(FactFilter(kind=AWAITED_SCOPE))}
            self.session.directory.notes[AWAITED_SCOPE] = found
        return found

    # events

    def emit(
        self,
        kind: str,
        *,
        data: dict[str, Any],
        scope: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        message_id: str | None = None,
        correlation_id: str | None = None,
    ) -> None:
        """An event that is not a message's change of state."""
        self.session.append(
            EventDraft(
                self.now,
                kind,
                tenant or self.tenant,
                scope,
                queue,
                message_id,
                correlation_id,
                None,
                self.actor,
                jsontext.text(data),
            )
        )

    def emit_change(self, row: Row, change: Change, queue: Queue, data: dict[str, Any]) -> None:
        self.session.append(
            EventDraft(
                self.now,
                change,
                row.tenant,
                queue.scope,
                queue.slug,
                row.id,
                row.correlation_id,
                row.causation_id,
                self.actor,
                change_data(row, data),
            )
        )

    # messages

    def rewrite(self, row: Row, content: Content) -> None:
        """Other content in the place of a message's; the ledger covers it from now on."""
        self.session.rewrite(row, content)
        self.emit(
            "content.rewritten",
            data={DIGEST: content_digest(row.id, content)},
            tenant=row.tenant,
            message_id=row.id,
            correlation_id=row.correlation_id,
        )

    def message(self, message_id: str) -> Row | None:
        """A live message of this tenant; None when it is archived; an error when there is none."""
        if checks.is_text(message_id):
            row = self.session.row(message_id)
            if row is not None and row.tenant == self.tenant:
                return row
            archived = self.session.archived(message_id) if row is None else None
            if archived is not None and archived.row.tenant == self.tenant:
                return None
        raise MessageNotFound(message_id=message_id)

    def admit(self, rows: list[Row], queue: Queue, texts: Iterable[str]) -> None:
        """Account for new rows of a queue, which the caller adds; `texts` are their events' data."""
        at_home = queue.slug == DEAD_LETTER
        append, now, actor = self.session.changes.events.append, self.now, self.actor
        tenant, scope, slug = queue.tenant, queue.scope, queue.slug
        tally: dict[tuple[int, int, str], int] = {}
        for row, text in zip(rows, texts, strict=True):
            key = (row.line, 0 if at_home else row.subscription_id or 0, row.state)
            tally[key] = tally.get(key, 0) + 1
            append(
                EventDraft(
                    now,
                    "message.published",
                    tenant,
                    scope,
                    slug,
                    row.id,
                    row.correlation_id,
                    row.causation_id,
                    actor,
                    text,
                )
            )
        for (line, subscription_id, state), count in tally.items():
            self.session.changes.count((queue.id, subscription_id, state), count)
            if state == "pending":
                self.woken[line] += count

    def hand_out(
        self, queue: Queue, rows: list[Row], actor: str, worker: str, lease_until: int, nonce: str
    ) -> None:
        """`move` for pending rows of one line that are claimed together."""
        changes, now = self.session.changes, self.now
        append = changes.events.append
        scope, slug = queue.scope, queue.slug
        texts: dict[int, str] = {}
        for row in rows:
            if row.state != "pending":
                raise AssertionError(f"a {row.state} message cannot be claimed")
            attempts, claims = row.attempts + 1, row.claims + 1
            row.state = "claimed"
            row.attempts, row.claims, row.token = attempts, claims, f"{claims}-{nonce}"
            row.claimed_by, row.claimed_at, row.updated_at = worker, now, now
            row.lease_until = row.due_at = lease_until
            row.visible_at = None
            text = texts.get(attempts)
            if text is None:
                text = texts[attempts] = change_data(row, {"worker": worker, "lease_until": lease_until})
            append(
                EventDraft(
                    now,
                    "message.claimed",
                    row.tenant,
                    scope,
                    slug,
                    row.id,
                    row.correlation_id,
                    row.causation_id,
                    actor,
                    text,
                )
            )
        changes.touch_all(rows, Shape.CLAIMED)
        subscription = rows[0].subscription_id or 0
        changes.shift(queue.id, subscription, "pending", "claimed", len(rows))

    def complete(self, rows: Sequence[Row], actor: str) -> None:
        """`move` of claimed rows to completed, which is what happens to most."""
        now, changes = self.now, self.session.changes
        for (queue_id, subscription), group in groupby(rows, key=_PLACE):
            queue, count = self.session.queue_by_id(queue_id), 0
            # Each claim that ends lets another begin.
            is_limited = queue.settings.concurrency is not None
            is_ruled = subscription is None and self.has_rules(queue.scope_id)
            is_awaited = subscription is None and queue.scope_id in self.awaited_scopes()
            scope, slug = queue.scope, queue.slug
            # Only now: to look these up may have sent what was gathered so far.
            append = changes.events.append
            for row in group:
                if row.state != "claimed":
                    raise AssertionError(f"a {row.state} message cannot be completed by its holder")
                # The token stays, so that a repeated complete is recognised.
                row.state, row.updated_at, row.finished_at = "completed", now, now
                row.claimed_by = row.claimed_at = row.lease_until = row.due_at = None
                append(
                    EventDraft(
                        now,
                        "message.completed",
                        row.tenant,
                        scope,
                        slug,
                        row.id,
                        row.correlation_id,
                        row.causation_id,
                        actor,
                        _completed_data(row),
                    )
                )
                count += 1
                if is_limited:
                    self.woken[row.line] += 1
                if is_ruled:
                    self._trigger(row, Change.COMPLETED)
                if is_awaited:
                    self.awaited.append(row.id)
            changes.shift(queue_id, subscription or 0, "claimed", "completed", count)
        changes.touch_all(rows, Shape.COMPLETED)

    def move(
        self, row: Row, change: Change, target: State, *, shape: Shape = Shape.CHANGED, **data: Any
    ) -> None:
        """Change a row's state and everything that follows from it."""
        before, state, now = row.state, target.value, self.now
        if not allowed(before, change, target):
            raise AssertionError(f"{change} cannot lead from {before} to {target}")
        queue = self.session.queue_by_id(row.queue_id)
        if state != before:
            self.tally(row, queue, -1)
        if state != "claimed":
            # The token stays on a completed message, so that a repeated complete is recognised; and on one
            # that waits again since its lease ran out: who is late but was not replaced may still complete.
            still_waits = change is Change.LEASE_EXPIRED or before == state == "pending"
            if state != "completed" and not still_waits:
                row.token = None
            row.claimed_by = row.claimed_at = row.lease_until = None
            if before == "claimed" and queue.settings.concurrency is not None:
                # Each claim that ends lets another begin.
                self.woken[row.line] += 1
        if state == "dead":
            home = self.dead_letters(row.tenant, queue.scope)
            row.origin_queue_id, row.queue_id = queue.id, home.id
            data["from"] = queue.slug
            queue, shape = home, Shape.MOVED
        row.state = state
        if state != before:
            self.tally(row, queue, 1)
        row.updated_at = now
        row.finished_at = now if target in TERMINAL else None
        self.set_due(row, queue)
        if state == "pending":
            self.woken[row.line] += 1
        self.session.touch(row, shape)
        self.emit_change(row, change, queue, data)
        self._trigger(row, change)
        if target in TERMINAL and row.subscription_id is None and row.scope_id in self.awaited_scopes():
            self.awaited.append(row.id)

    def _trigger(self, row: Row, change: Change) -> None:
        """Remember a change that rules may wait for; they meet it before the transaction ends."""
        trigger = TRIGGERS.get(change)
        if trigger is not None and row.subscription_id is None and self.has_rules(row.scope_id):
            self.triggered.append((row.id, trigger, row.origin_queue_id or row.queue_id, row.attempts))

    def tally(self, row: Row, queue: Queue, delta: int) -> None:
        """Count a row where it is; dead letters count together, whoever they were meant for."""
        subscription = 0 if queue.slug == DEAD_LETTER else row.subscription_id or 0
        self.session.changes.count((queue.id, subscription, row.state), delta)

    def set_due(self, row: Row, queue: Queue) -> None:
        """When this row must next be looked at without anybody asking. That is never in the past, so a store
        that has looked at all up to a time need not look there again."""
        state, due_at = row.state, None
        if state == "claimed":
            due_at = row.lease_until
        elif state not in ("pending", "delayed") or is_original(row, queue):
            # Time acts on the deliveries of a broadcast; the original ends with the last of them.
            pass
        elif state == "pending":
            due_at = row.expires_at
        else:
            due_at = earlier(row.visible_at, row.expires_at)
        row.due_at = None if due_at is None else max(due_at, self.now)

    def open_deliveries(self, row: Row) -> list[Row]:
        """The deliveries of a broadcast message that are still open."""
        return self.session.find(RowFilter(parent_id=row.id, kind="delivery", states=OPEN_STATES))

    def end_delivery(self, row: Row) -> None:
        """A broadcast message completes with the end of its last delivery: see `complete_broadcasts`."""
        if row.subscription_id is not None and row.parent_id is not None:
            self.ended[row.parent_id] = self.actor

    def complete_broadcasts(self) -> None:
        """Those of which the last delivery has ended meanwhile.

        The messages are locked before their deliveries are counted: of two that end at once in different
        transactions, the later one sees the end of the other."""
        if not self.ended:
            return
        ended, self.ended = self.ended, {}
        self.session.load(ended)
        rows = [row for row in map(self.session.row, ended) if row is not None]
        waiting = [row for row in rows if row.state == State.PENDING]
        unfinished = self.session.unfinished([row.id for row in waiting]) if waiting else ()
        actor = self.actor
        for row in waiting:
            if row.id not in unfinished:
                self.actor = ended[row.id]
                self.move(row, Change.COMPLETED, State.COMPLETED)
        self.actor = actor

    def bury(self, row: Row, reason: str, kind: str | None = None) -> None:
        """To the dead letters, with the reason why."""
        row.failure_reason = checks.reason_text(reason, self.limits)
        row.failure_kind = kind
        self.move(row, Change.DEAD_LETTERED, State.DEAD, reason=row.failure_reason[:200], kind=kind)
        self.end_delivery(row)
        if row.parent_id is not None and row.subscription_id is None:
            self.hooks.give_up_review(self, row, row.failure_reason)

    def with_deliveries(self, row: Row) -> list[Row]:
        """A broadcast message before its open deliveries: ended first, it is not completed by their end."""
        return [row] if row.subscription_id is not None else [row, *self.open_deliveries(row)]

    def bury_all(self, row: Row, reason: str, kind: str | None) -> None:
        """Of a broadcast, the message is the dead letter; its deliveries are cancelled."""
        first, *deliveries = self.with_deliveries(row)
        self.bury(first, reason, kind)
        for delivery in deliveries:
            self.cancel(delivery, reason)

    def cancel(self, row: Row, reason: str) -> None:
        row.failure_reason = checks.reason_text(reason, self.limits)
        self.move(row, Change.CANCELLED, State.CANCELLED, reason=row.failure_reason[:200])

    def reorder(self, row: Row, queue: Queue, *, entered_at: int) -> None:
        by_deadline = queue.settings.ordering is Ordering.DEADLINE
        deadline = self.session.content(row).deadline if by_deadline else None
        row.sort_key = sort_key(
            queue.settings.ordering,
            entered_at=entered_at,
            tier=row.priority_tier,
            score=row.priority_score,
            deadline=deadline,
        )


def change_data(row: Row, data: dict[str, Any]) -> str:
    """The data of a message's event: what is said, and what a fold of the ledger needs."""
    data["state"], data["attempts"] = row.state, row.attempts
    if row.subscription_id is not None:
        data["subscription"] = row.subscription_id
    if row.state == "completed" and row.result is not None:
        data[RESULT_DIGEST] = result_digest(row.id, row.result)
    return jsontext.text(data)


def _completed_data(row: Row) -> str:
    text = _completed(row.attempts, row.subscription_id)
    if row.result is None:
        return text
    return f'{text[:-1]},"{RESULT_DIGEST}":"{result_digest(row.id, row.result)}"}}'


@lru_cache(maxsize=1000)
def _completed(attempts: int, subscription_id: int | None) -> str:
    """The data of the event that a holder's completion leaves."""
    data: dict[str, Any] = {"state": "completed", "attempts": attempts}
    if subscription_id is not None:
        data["subscription"] = subscription_id
    return jsontext.text(data)


def is_original(row: Row, queue: Queue) -> bool:
    """Whether this is a broadcast message itself, not the delivery of one to a subscriber."""
    return row.subscription_id is None and queue.settings.consumer_mode is ConsumerMode.BROADCAST


def earlier(one: int | None, other: int | None) -> int | None:
    """The first of two moments, of which either may not be set."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
