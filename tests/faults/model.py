"""The queue as simply as it can be said: a dict of messages and what each verb does to them.

It keeps no rows, no ledger and no indexes; what the kernel does must come out the same.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from postroom.clock import micros
from postroom.errors import (
    ClaimLost,
    IdempotencyConflict,
    MessageNotFound,
    NotEmpty,
    PostroomError,
    QueueClosed,
    QueueFull,
    SubscriptionNotFound,
    WrongState,
)

RANK = {"critical": 4, "high": 3, "normal": 2, "low": 1, "background": 0}
OPEN = ("pending", "delayed", "claimed")
LAST = 2**62


class Refused(Exception):
    """The kernel must refuse this with such an error."""

    def __init__(self, kind: type[PostroomError]) -> None:
        self.kind = kind
        super().__init__(kind.__name__)


@dataclass(eq=False)
class Msg:
    queue: str
    number: int
    created: int
    body: Any = None
    key: str | None = None
    tier: str = "normal"
    score: int = 500
    deadline: int | None = None
    expires: int | None = None
    visible: int | None = None
    sort: int = 0
    subscriber: int | None = None
    parent: "Msg | None" = None
    id: str = ""
    state: str = "pending"
    attempts: int = 0
    claims: int = 0
    token: str | None = None
    lease: int | None = None
    ended: int | None = None
    archived: bool = False
    buried: bool = False
    """Whether it lies in the dead letters, where it stays when it is discarded."""

    @property
    def live(self) -> bool:
        return not self.archived


@dataclass
class Queue:
    ordering: str = "fifo"
    broadcast: bool = False
    max_retries: int = 3
    lease_s: float = 10
    concurrency: int | None = None
    max_depth: int | None = None
    overflow: str = "reject"
    state: str = "active"
    subscribers: dict[str, int] = field(default_factory=dict)


class Model:
    def __init__(self, queues: dict[str, Queue]) -> None:
        self.queues = queues
        self.messages: list[Msg] = []
        self.now = 0
        self._ahead = 0
        self._numbers = 0
        self._subscribers = 0

    def tick(self, told: int, last_event: int) -> None:
        """Time goes on but never back: when the clock was put back, it goes on from where it stood."""
        self._ahead = 0 if told >= last_event else max(self._ahead, last_event - told)
        self.now = told + self._ahead

    # what is there

    def find(self, id_: str) -> Msg:
        for message in self.messages:
            if message.id == id_:
                return message
        raise Refused(MessageNotFound)

    def of(self, queue: str, *states: str, subscriber: int | None = None) -> list[Msg]:
        return [
            m
            for m in self.messages
            if m.live and m.queue == queue and m.state in states and m.subscriber == subscriber
        ]

    def due_at(self, m: Msg) -> int | None:
        if not m.live or m.state not in OPEN or self._is_original(m):
            return None
        if m.state == "claimed":
            return m.lease
        moments = [at for at in (m.expires, m.visible if m.state == "delayed" else None) if at is not None]
        return min(moments, default=None)

    def _is_original(self, m: Msg) -> bool:
        return self.queues[m.queue].broadcast and m.subscriber is None

    def _place(self, m: Msg, entered: int) -> None:
        ordering = self.queues[m.queue].ordering
        by = {"fifo": entered, "priority": -(RANK[m.tier] * 1000 + m.score)}
        m.sort = by.get(ordering, LAST if m.deadline is None else m.deadline)

    # publishing

    def publish(self, queue: str, sent: list[dict[str, Any]]) -> list[tuple[Msg, bool]]:
        """Each message and whether it is new."""
        place = self.queues[queue]
        if place.state != "active":
            raise Refused(QueueClosed)
        answers: list[tuple[Msg, bool]] = []
        drafts: list[Msg] = []
        for fields in sent:
            known = self._by_key(queue, fields["key"], drafts)
            if known is not None:
                if known.body != fields["body"]:
                    raise Refused(IdempotencyConflict)
                answers.append((known, False))
                continue
            draft = Msg(queue, 0, self.now, **fields)
            if draft.deadline is not None and (draft.expires is None or draft.deadline < draft.expires):
                draft.expires = draft.deadline
            self._place(draft, self.now)
            if draft.visible is not None and draft.visible <= self.now:
                draft.visible = None
            draft.state = "pending" if draft.visible is None else "delayed"
            drafts.append(draft)
            answers.append((draft, True))
        self._make_room(queue, drafts)
        # The dead are entered first.
        for draft in sorted(drafts, key=lambda m: m.state != "dead"):
            self._enter(draft)
            if place.broadcast and draft.state != "dead":
                draft.state = "pending"
                self.deliver(draft, place.subscribers.values())
                if not place.subscribers:
                    self.end(draft, "completed")
        return answers

    def _by_key(self, queue: str, key: str | None, drafts: list[Msg]) -> Msg | None:
        if key is None:
            return None
        return next((m for m in [*self.messages, *drafts] if m.queue == queue and m.key == key), None)

    def _enter(self, m: Msg) -> None:
        self._numbers += 1
        m.number = self._numbers
        self.messages.append(m)

    def _make_room(self, queue: str, drafts: list[Msg]) -> None:
        place = self.queues[queue]
        if place.max_depth is None or not drafts:
            return
        waiting = self.of(queue, "pending", "delayed")
        over = len(waiting) + len(drafts) - place.max_depth
        if over <= 0:
            return
        if place.overflow == "reject":
            raise Refused(QueueFull)
        refused = drafts[-over:]
        if place.overflow == "drop_oldest":
            dropped = sorted(waiting, key=lambda m: m.number)[:over]
            for message in dropped:
                self.bury_all(message)
            refused = drafts[: over - len(dropped)]
        for draft in refused:
            self.end(draft, "dead")

    def deliver(self, original: Msg, subscribers: Iterable[int]) -> list[Msg]:
        made = []
        for subscriber in subscribers:
            m = Msg(original.queue, 0, self.now, original.body, subscriber=subscriber, parent=original)
            m.tier, m.score, m.deadline = original.tier, original.score, original.deadline
            m.expires, m.sort = original.expires, original.sort
            if original.visible is not None and original.visible > self.now:
                m.visible, m.state = original.visible, "delayed"
            self._enter(m)
            made.append(m)
        return made

    # ends

    def end(self, m: Msg, state: str) -> None:
        if state != "completed":
            m.token = None
        m.state, m.ended, m.lease = state, self.now, None
        m.buried |= state == "dead"

    def _delivery_ended(self, m: Msg) -> None:
        parent = m.parent
        if parent is None or any(d.parent is parent and d.live and d.state in OPEN for d in self.messages):
            return
        if parent.live and parent.state == "pending":
            self.end(parent, "completed")

    def finish(self, m: Msg, state: str) -> None:
        self.end(m, state)
        self._delivery_ended(m)

    def _deliveries(self, m: Msg) -> list[Msg]:
        return [d for d in self.messages if d.parent is m and d.live and d.state in OPEN]

    def bury_all(self, m: Msg) -> None:
        """Of a broadcast, the message is the dead letter; its deliveries are cancelled."""
        deliveries = self._deliveries(m)
        self.finish(m, "dead")
        for delivery in deliveries:
            self.end(delivery, "cancelled")

    def cancel_all(self, m: Msg) -> None:
        for delivery in self._deliveries(m):
            self.end(delivery, "cancelled")
        self.finish(m, "cancelled")

    def opened(self, id_: str) -> Msg:
        m = self.find(id_)
        if m.archived or m.state not in OPEN:
            raise Refused(WrongState)
        return m

    # time and claims

    def sweep(self) -> None:
        due = [
            (at, m.number, m) for m in self.messages if (at := self.due_at(m)) is not None and at <= self.now
        ]
        for _, _, m in sorted(due, key=lambda each: each[:2]):
            if m.state == "claimed":
                self._lease_ran_out(m)
            elif m.expires is not None and m.expires <= self.now:
                self.finish(m, "expired")
            else:
                m.state, m.visible = "pending", None

    def _lease_ran_out(self, m: Msg) -> None:
        if m.attempts >= self.queues[m.queue].max_retries:
            self.finish(m, "dead")
        else:
            # Until somebody else is given it, who had it may still complete.
            m.state, m.lease = "pending", None

    def claim(self, queue: str, limit: int, lease_s: float | None, subscriber: str | None) -> list[Msg]:
        place = self.queues[queue]
        if subscriber is not None and subscriber not in place.subscribers:
            self.sweep()
            raise Refused(SubscriptionNotFound)
        self.sweep()
        if place.state not in ("active", "draining"):
            return []
        line = None if subscriber is None else place.subscribers[subscriber]
        if place.concurrency is not None:
            limit = min(limit, place.concurrency - len(self.of(queue, "claimed", subscriber=line)))
        waiting = sorted(self.of(queue, "pending", subscriber=line), key=lambda m: (m.sort, m.number))
        taken: list[Msg] = []
        for m in waiting:
            if len(taken) >= limit:
                break
            if m.expires is not None and m.expires <= self.now:
                # Its lease ran out in this very sweep, and its life had ended meanwhile.
                self.finish(m, "expired")
                continue
            m.state, m.visible = "claimed", None
            m.attempts += 1
            m.claims += 1
            m.lease = self.now + micros(place.lease_s if lease_s is None else lease_s)
            taken.append(m)
        return taken

    def held(self, id_: str, token: str) -> Msg:
        m = self.find(id_)
        if m.archived or m.state != "claimed" or m.token != token:
            raise Refused(ClaimLost)
        return m

    def complete(self, id_: str, token: str) -> None:
        m = self.find(id_)
        if m.live and m.state == "completed" and m.token == token:
            return
        is_late = m.live and m.state == "pending" and m.token == token
        self.finish(m if is_late else self.held(id_, token), "completed")

    def back(self, m: Msg, visible: int | None) -> None:
        later = visible is not None and visible > self.now
        m.state, m.visible = ("delayed", visible) if later else ("pending", None)
        m.token = m.lease = None

    # dead letters, subscribers, places

    def dead(self, ids: Iterable[str]) -> list[Msg]:
        found = [self.find(id_) for id_ in ids]
        if any(m.archived or m.state != "dead" for m in found):
            raise Refused(WrongState)
        return found

    def all_dead(self, limit: int, only: Callable[[Msg], bool] | None) -> list[Msg]:
        """The oldest dead letters, up to a limit; with `only`, of those that it allows."""
        dead = [m for m in self.messages if m.live and m.state == "dead" and (only is None or only(m))]
        return sorted(dead, key=lambda m: m.number)[:limit]

    def addressee_there(self, m: Msg) -> bool:
        return m.subscriber is None or m.subscriber in self.queues[m.queue].subscribers.values()

    def replay(self, m: Msg, together: list[Msg]) -> bool:
        """False for a delivery whose broadcast is replayed with it: that one reaches everybody anew."""
        if m.parent in together:
            self.end(m, "cancelled")
            return False
        m.attempts, m.visible, m.ended, m.state, m.buried = 0, None, None, "pending", False
        if m.expires is not None and m.expires <= self.now:
            m.expires = self.now + max(m.expires - m.created, 1)
        self._place(m, self.now)
        if self._is_original(m):
            subscribers = self.queues[m.queue].subscribers
            self.deliver(m, subscribers.values())
            if not subscribers:
                self.end(m, "completed")
        return True

    def subscribe(self, queue: str, name: str, earliest: bool) -> None:
        place = self.queues[queue]
        if name in place.subscribers:
            return
        self._subscribers += 1
        place.subscribers[name] = self._subscribers
        kept = self.of(queue, "pending", "completed") if earliest else []
        for original in sorted(kept, key=lambda m: m.number):
            if original.expires is None or original.expires > self.now:
                self.deliver(original, [self._subscribers])

    def unsubscribe(self, queue: str, name: str) -> None:
        place = self.queues[queue]
        if name not in place.subscribers:
            raise Refused(SubscriptionNotFound)
        number = place.subscribers[name]
        if self.of(queue, "claimed", subscriber=number):
            raise Refused(NotEmpty)
        for m in self.of(queue, "pending", "delayed", subscriber=number):
            self.finish(m, "cancelled")
        del place.subscribers[name]

    def reorder(self, queue: str, ordering: str) -> None:
        if self.queues[queue].ordering == ordering:
            return
        self.queues[queue].ordering = ordering
        for m in self.messages:
            if m.live and m.queue == queue and m.state in OPEN:
                self._place(m, m.created)

    def reprioritise(self, id_: str, tier: str, score: int) -> None:
        m = self.find(id_)
        if m.archived or m.state not in ("pending", "delayed"):
            raise Refused(WrongState)
        for each in [m, *(d for d in self._deliveries(m) if d.state != "claimed")]:
            self._rank(each, tier, score)

    def _rank(self, m: Msg, tier: str, score: int) -> None:
        m.tier, m.score = tier, score
        if self.queues[m.queue].ordering == "priority":
            self._place(m, m.created)

    def age(self, after_s: float, step: int) -> None:
        for m in self.messages:
            waits = m.live and m.state == "pending" and self.queues[m.queue].ordering == "priority"
            if waits and m.created <= self.now - micros(after_s) and m.score < 1000:
                self._rank(m, m.tier, min(m.score + step, 1000))

    def archive(self, after_s: float, dead_after_s: float) -> None:
        for m in self.messages:
            if m.ended is not None and m.state not in OPEN:
                m.archived |= m.ended <= self.now - micros(dead_after_s if m.state == "dead" else after_s)
