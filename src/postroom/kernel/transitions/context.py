"""The working context of one transaction: the time, the places, and the one way a message changes state.

Every change goes through `move` (or `admit` at publish, and `hand_out` and `complete`, which are `move` for
what happens most), so each is checked against the state table, counted, and recorded by exactly one event.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from postroom.clock import Clock
from postroom.errors import MessageNotFound, QueueNotFound, ScopeNotFound, SubscriptionNotFound
from postroom.ids import Ids
from postroom.kernel import checks, jsontext
from postroom.kernel.housekeeping.housekeepers import Retention
from postroom.kernel.ledger import EventDraft
from postroom.kernel.limits import Limits
from postroom.kernel.model import (
    DEAD_LETTER,
    ConsumerMode,
    LifecycleState,
    Ordering,
    Queue,
    Scope,
    Subscription,
)
from postroom.kernel.ordering import sort_key
from postroom.kernel.ports import Transaction
from postroom.kernel.rows import Row
from postroom.kernel.rules.breaker import Breaker
from postroom.kernel.schemas import Validators
from postroom.kernel.states import TERMINAL, Change, State, allowed

# Message, trigger, queue, attempts.
Triggered = tuple[str, str, int, int]
TRIGGERS = {
    Change.COMPLETED: "message_completed",
    Change.FAILED: "message_failed",
    Change.DEAD_LETTERED: "message_dead_lettered",
    Change.EXPIRED: "message_expired",
}


class KernelEnvironment:
    """What outlives a transaction: the clock, ids, limits, randomness and compiled schemas."""

    def __init__(
        self, clock: Clock, ids: Ids, limits: Limits, retention: Retention, rng: random.Random
    ) -> None:
        self.clock = clock
        self.ids = ids
        self.limits = limits
        self.retention = retention
        self.rng = rng
        self.validators = Validators()
        self.breaker = Breaker()
        self.rules: dict[int, tuple[Any, list[Any]]] = {}
        self._ahead = 0
        self._stamp: object | None = None
        self._known: dict[object, Any] = {}

    def known(self, tx: Transaction) -> dict[object, Any] | None:
        """What was found out about places and still holds; None when the store cannot tell."""
        stamp = tx.places_stamp()
        if stamp is None:
            return None
        if stamp is not self._stamp:
            self._stamp, self._known = stamp, {}
        return self._known

    def now(self, not_before: int) -> int:
        """The time, which goes on but never back, whatever the clock of the machine does.

        A clock that was put back would disturb the order of entry and of the ledger. From where it stood,
        time then goes on at its pace, so that leases and delays end, until the clock has caught up.
        """
        told = self.clock.now()
        if told >= not_before:
            self._ahead = 0
            return told
        if told + self._ahead < not_before:
            self._ahead = not_before - told
        return told + self._ahead


class TransitionContext:
    def __init__(self, tx: Transaction, env: KernelEnvironment) -> None:
        self.tx = tx
        self.env = env
        self.limits = env.limits
        self.ids = env.ids
        self.rng = env.rng
        self.now = env.now(tx.last_time())
        self.actor = "system"
        self.tenant = "default"
        self.woken: defaultdict[int, int] = defaultdict(int)
        # Scopes with rules (mostly none), and what happened there that rules may wait for.
        self.ruled = tx.ruled_scopes()
        self.triggered: list[Triggered] = []

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo everything since its start when its block raises, also what rules would have met."""
        triggered, ruled = len(self.triggered), self.ruled
        try:
            with self.tx.savepoint():
                yield
        except BaseException:
            del self.triggered[triggered:]
            self.ruled = ruled
            raise

    # places

    def scope(self, slug: str) -> Scope:
        scope = self.tx.scope(self.tenant, slug)
        if scope is None:
            raise ScopeNotFound(scope=slug)
        return scope

    def queue(self, path: str) -> Queue:
        scope, slug = checks.split_path(path)
        queue = self.tx.queue(self.tenant, scope, slug)
        if queue is None:
            self.scope(scope)
            raise QueueNotFound(queue=f"{scope}/{slug}")
        return queue

    def subscription(self, queue: Queue, name: str) -> Subscription:
        for subscription in self.tx.subscriptions(queue.id):
            if subscription.name == name:
                return subscription
        raise SubscriptionNotFound(queue=queue.path, subscription=name)

    def is_open(self, queue: Queue) -> bool:
        """Whether consumers may claim: a draining place hands out, a paused or archived one does not."""
        handing_out = (LifecycleState.ACTIVE, LifecycleState.DRAINING)
        return queue.state in handing_out and self.tx.scope_by_id(queue.scope_id).state in handing_out

    # events

    def record(
        self,
        kind: str,
        *,
        data: dict[str, Any],
        scope: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
    ) -> None:
        """An event that is not about one message."""
        self.tx.append(
            EventDraft(
                self.now,
                kind,
                tenant or self.tenant,
                scope,
                queue,
                None,
                None,
                None,
                self.actor,
                jsontext.text(data),
            )
        )

    def note(self, row: Row, change: Change, queue: Queue, data: dict[str, Any]) -> None:
        data["state"] = row.state
        data["attempts"] = row.attempts
        if row.subscription_id is not None:
            data["subscription"] = row.subscription_id
        self.tx.append(
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
                jsontext.text(data),
            )
        )

    # messages

    def message(self, message_id: str) -> Row | None:
        """A live message of this tenant; None when it is archived; an error when there is none."""
        if checks.is_text(message_id):
            row = self.tx.row(message_id)
            if row is not None and row.tenant == self.tenant:
                return row
            archived = self.tx.archived(message_id) if row is None else None
            if archived is not None and archived.row.tenant == self.tenant:
                return None
        raise MessageNotFound(message_id=message_id)

    def admit(self, rows: list[Row], queue: Queue, texts: Iterable[str]) -> None:
        """Account for new rows of a queue, which the caller inserts; `texts` are their events' data."""
        at_home = queue.slug == DEAD_LETTER
        append, now, actor = self.tx.append, self.now, self.actor
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
            self.tx.count(queue.id, subscription_id, state, count)
            if state == "pending":
                self.woken[line] += count

    def hand_out(
        self, queue: Queue, rows: list[Row], actor: str, worker: str, lease_until: int, nonce: str
    ) -> None:
        """`move` for pending rows of one line that are claimed together; the caller saves them."""
        append, now = self.tx.append, self.now
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
                text = texts[attempts] = told(row, worker=worker, lease_until=lease_until)
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
        subscription = rows[0].subscription_id or 0
        self.tx.count(queue.id, subscription, "pending", -len(rows))
        self.tx.count(queue.id, subscription, "claimed", len(rows))

    def complete(self, row: Row) -> None:
        """`move` of a claimed row to completed, which is what happens to most; the caller saves it."""
        if row.state != "claimed":
            raise AssertionError(f"a {row.state} message cannot be completed by its holder")
        queue, now, tx = self.tx.queue_by_id(row.queue_id), self.now, self.tx
        subscription = row.subscription_id
        # The token stays, so that a repeated complete is recognised.
        row.state, row.updated_at, row.finished_at = "completed", now, now
        row.claimed_by = row.claimed_at = row.lease_until = row.due_at = None
        tx.count(queue.id, subscription or 0, "claimed", -1)
        tx.count(queue.id, subscription or 0, "completed", 1)
        if queue.settings.concurrency is not None:
            # Each claim that ends lets another begin.
            self.woken[row.line] += 1
        tx.append(
            EventDraft(
                now,
                "message.completed",
                row.tenant,
                queue.scope,
                queue.slug,
                row.id,
                row.correlation_id,
                row.causation_id,
                self.actor,
                _completed(row.attempts, subscription),
            )
        )
        if self.ruled:
            self._trigger(row, Change.COMPLETED)

    def move(self, row: Row, change: Change, target: State, **data: Any) -> None:
        """Change a row's state and everything that follows from it; the caller saves the row."""
        before, state, now = row.state, target.value, self.now
        if not allowed(before, change, target):
            raise AssertionError(f"{change} cannot lead from {before} to {target}")
        queue = self.tx.queue_by_id(row.queue_id)
        if state != before:
            self.tally(row, queue, -1)
        if state != "claimed":
            # The token stays on a completed message, so that a repeated complete is recognised.
            if state != "completed":
                row.token = None
            row.claimed_by = row.claimed_at = row.lease_until = None
            if before == "claimed" and queue.settings.concurrency is not None:
                # Each claim that ends lets another begin.
                self.woken[row.line] += 1
        if state == "dead":
            queue = self._home_of(row, queue, data)
        row.state = state
        if state != before:
            self.tally(row, queue, 1)
        row.updated_at = now
        row.finished_at = now if target in TERMINAL else None
        self._schedule(row, queue)
        if state == "pending":
            self.woken[row.line] += 1
        self.note(row, change, queue, data)
        if self.ruled:
            self._trigger(row, change)

    def _trigger(self, row: Row, change: Change) -> None:
        """Remember a change that rules may wait for; they meet it before the transaction ends."""
        trigger = TRIGGERS.get(change)
        if trigger is not None and row.scope_id in self.ruled and row.subscription_id is None:
            self.triggered.append((row.id, trigger, row.origin_queue_id or row.queue_id, row.attempts))

    def _home_of(self, row: Row, queue: Queue, data: dict[str, Any]) -> Queue:
        home = self.tx.queue(row.tenant, queue.scope, DEAD_LETTER)
        assert home is not None, "every scope has its dead letters"
        row.origin_queue_id, row.queue_id = queue.id, home.id
        data["from"] = queue.slug
        return home

    def tally(self, row: Row, queue: Queue, delta: int) -> None:
        """Count a row where it is; dead letters count together, whoever they were meant for."""
        subscription = 0 if queue.slug == DEAD_LETTER else row.subscription_id or 0
        self.tx.count(queue.id, subscription, row.state, delta)

    def _schedule(self, row: Row, queue: Queue) -> None:
        """When this row must next be looked at without anybody asking."""
        state = row.state
        if state == "claimed":
            row.due_at = row.lease_until
        elif state not in ("pending", "delayed") or is_original(row, queue):
            # Time acts on the deliveries of a broadcast; the original ends with the last of them.
            row.due_at = None
        elif state == "pending":
            row.due_at = row.expires_at
        else:
            row.due_at = earlier(row.visible_at, row.expires_at)

    def delivery_ended(self, row: Row) -> None:
        """A broadcast message completes when the last of its deliveries has ended."""
        if row.subscription_id is None or row.parent_id is None or self.tx.open_deliveries(row.parent_id):
            return
        parent = self.tx.row(row.parent_id)
        if parent is not None and parent.state == State.PENDING:
            self.move(parent, Change.COMPLETED, State.COMPLETED)
            self.tx.save([parent])

    def bury(self, row: Row, reason: str, kind: str | None = None) -> None:
        """To the dead letters, with the reason why."""
        row.failure_reason = checks.reason_text(reason, self.limits)
        row.failure_kind = kind
        self.move(row, Change.DEAD_LETTERED, State.DEAD, reason=row.failure_reason[:200], kind=kind)
        self.tx.relocate([row])
        self.delivery_ended(row)
        if row.parent_id is not None and row.subscription_id is None:
            from postroom.kernel.reviews import timeouts

            timeouts.given_up(self, row, row.failure_reason)

    def with_deliveries(self, row: Row) -> list[Row]:
        """A broadcast message before its open deliveries: ended first, it is not completed by their end."""
        if row.subscription_id is not None:
            return [row]
        return [row, *self.tx.deliveries(row.id)]

    def bury_all(self, row: Row, reason: str, kind: str | None) -> None:
        """Of a broadcast, the message is the dead letter; its deliveries are cancelled."""
        first, *deliveries = self.with_deliveries(row)
        self.bury(first, reason, kind)
        for delivery in deliveries:
            self.cancel(delivery, reason)

    def cancel(self, row: Row, reason: str) -> None:
        row.failure_reason = checks.reason_text(reason, self.limits)
        self.move(row, Change.CANCELLED, State.CANCELLED, reason=row.failure_reason[:200])
        self.tx.save([row])

    def reorder(self, row: Row, queue: Queue, *, entered_at: int) -> None:
        by_deadline = queue.settings.ordering is Ordering.DEADLINE
        deadline = self.tx.content(row).deadline if by_deadline else None
        row.sort_key = sort_key(
            queue.settings.ordering,
            entered_at=entered_at,
            tier=row.priority_tier,
            score=row.priority_score,
            deadline=deadline,
        )


def told(row: Row, **data: Any) -> str:
    """The data of a new row's event."""
    data["state"], data["attempts"] = row.state, row.attempts
    if row.subscription_id is not None:
        data["subscription"] = row.subscription_id
    return jsontext.text(data)


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
