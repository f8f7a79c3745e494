"""The nouns of the post room as users meet them: scope, queue, message, subscription, schema."""

from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

from postroom.kernel.states import State

BodyT = TypeVar("BodyT")


class Ordering(StrEnum):
    FIFO = "fifo"
    PRIORITY = "priority"
    DEADLINE = "deadline"


class ConsumerMode(StrEnum):
    COMPETING = "competing"
    BROADCAST = "broadcast"


class Overflow(StrEnum):
    REJECT = "reject"
    DROP_OLDEST = "drop_oldest"
    DEAD_LETTER = "dead_letter"


class LifecycleState(StrEnum):
    """Whether a scope or queue is open."""

    ACTIVE = "active"
    PAUSED = "paused"
    DRAINING = "draining"
    ARCHIVED = "archived"


class AfterFailed(StrEnum):
    """What becomes of a message when one that it waits for ends otherwise than completed."""

    DEAD_LETTER = "dead_letter"
    RUN = "run"


class Tier(StrEnum):
    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"
    BACKGROUND = "background"


DEAD_LETTER = "_dead_letter"
# The type of a review that holds a message back.
REVIEW = "hitl_request"
EVENTS_QUEUE = "_events"
INTEGRITY = "_integrity"
SYSTEM_QUEUES = (DEAD_LETTER, EVENTS_QUEUE, "_audit", INTEGRITY, "_corrections")


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of queues with its own dead letters, keys and rules.

    >>> room.scope("default").slug
    'default'
    """

    id: int
    tenant: str
    slug: str
    display_name: str
    description: str
    state: LifecycleState
    created_at: int
    updated_at: int


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a queue that its owner may choose.

    >>> room.queue("orders").settings.visibility_timeout_s
    30.0
    """

    display_name: str = ""
    description: str = ""
    ordering: Ordering = Ordering.FIFO
    consumer_mode: ConsumerMode = ConsumerMode.COMPETING
    visibility_timeout_s: float = 30.0
    max_retries: int = 5
    backoff_base_s: float = 1.0
    backoff_cap_s: float = 300.0
    concurrency: int | None = None
    rate_limit: int | None = None
    rate_period_s: float = 1.0
    rate_key: str | None = None
    max_depth: int | None = None
    overflow_policy: Overflow = Overflow.REJECT
    default_ttl_s: float | None = None
    schema: str | None = None
    retention_s: float | None = None


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue with its settings and its state.

    >>> queue = room.queue("orders")
    >>> queue.path, queue.settings.max_retries
    ('default/orders', 5)
    """

    id: int
    scope_id: int
    tenant: str
    scope: str
    slug: str
    state: LifecycleState
    system: bool
    settings: QueueSettings
    created_at: int
    updated_at: int

    @property
    def path(self) -> str:
        return f"{self.scope}/{self.slug}"


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many messages of one queue are in each state; archived ones are not counted.

    >>> _ = room.publish_many("orders", [1, 2])
    >>> room.counts("orders").open
    2
    """

    pending: int = 0
    delayed: int = 0
    claimed: int = 0
    completed: int = 0
    dead: int = 0
    expired: int = 0
    cancelled: int = 0

    @property
    def waiting(self) -> int:
        return self.pending + self.delayed

    @property
    def open(self) -> int:
        return self.pending + self.delayed + self.claimed


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """A reader of a broadcast queue: each is given every message.

    >>> _ = room.create_queue("news", consumer_mode="broadcast")
    >>> room.subscribe("news", "ann").queue
    'default/news'
    """

    id: int
    queue_id: int
    queue: str
    name: str
    created_at: int


class Schema(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a JSON Schema; a published version never changes.

    >>> room.register_schema("default", "order", {"type": "object"}).version
    1
    """

    scope: str
    name: str
    version: int
    document: dict[str, Any]
    created_at: int


class NewMessage(msgspec.Struct, kw_only=True):
    """What a publisher says about one message; everything but the body has a default.

    >>> from postroom import NewMessage
    >>> sent = room.publish_many("orders", [NewMessage(body=1, delay_s=60), NewMessage(body=2)])
    >>> [receipt.state.value for receipt in sent]
    ['delayed', 'pending']
    """

    body: Any = None
    message_type: str = "message"
    content_type: str = "application/json"
    priority_tier: str = "normal"
    priority_score: int = 500
    labels: dict[str, Any] | None = None
    ttl_s: float | None = None
    deadline: int | None = None
    delay_until: int | None = None
    delay_s: float | None = None
    idempotency_key: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    parent_id: str | None = None
    hop: int = 0
    hitl_spec: dict[str, Any] | None = None
    source_type: str = "user"
    source_id: str | None = None
    channel: str | None = None
    sender: str | None = None
    sender_id: str | None = None
    agent: str | None = None
    from_agent: str | None = None
    files: list[str] | None = None
    metadata: dict[str, Any] | None = None
    after: list[str] | None = None
    """Messages that must have ended well before this one can be claimed."""
    after_failed: AfterFailed = AfterFailed.DEAD_LETTER


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """The answer to a publish: the message's id, and whether this call made it or an earlier one had.

    >>> receipt = room.publish("orders", 1)
    >>> receipt.created, receipt.state.value
    (True, 'pending')
    """

    id: str
    created: bool
    state: State


class Message(msgspec.Struct, Generic[BodyT], frozen=True):
    """One message as a reader or the holder of a claim sees it. Times are microseconds since 1970.

    >>> room.publish("orders", {"total": 12})
    Receipt(id='...', created=True, state=<State.PENDING: 'pending'>)
    >>> [message] = room.claim("orders")
    >>> message.path, message.body, message.attempts
    ('default/orders', {'total': 12}, 1)
    """

    id: str
    tenant: str
    scope: str
    queue: str
    subscription: str | None
    state: State
    message_type: str
    content_type: str
    body: BodyT
    labels: dict[str, Any]
    priority_tier: Tier
    priority_score: int
    attempts: int
    correlation_id: str | None
    causation_id: str | None
    parent_id: str | None
    hop: int
    idempotency_key: str | None
    created_at: int
    updated_at: int
    finished_at: int | None
    expires_at: int | None
    visible_at: int | None
    ttl_s: float | None
    deadline: int | None
    delay_until: int | None
    claimed_by: str | None
    claimed_at: int | None
    claim_expires_at: int | None
    claim_token: str | None
    failure_reason: str | None
    failure_kind: str | None
    result: Any
    hitl_spec: dict[str, Any] | None
    origin_queue: str | None
    source_type: str
    source_id: str | None
    channel: str | None
    sender: str | None
    sender_id: str | None
    agent: str | None
    from_agent: str | None
    files: list[str]
    metadata: dict[str, Any]
    archived: bool

    @property
    def path(self) -> str:
        """The message's queue as `scope/queue`."""
        return f"{self.scope}/{self.queue}"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A fact kept beside the messages (a turn, a cost), committed with them.

    >>> room.record("cost", "bank", {"cents": 3})
    >>> room.latest_record("cost", "bank").data["cents"]
    3
    """

    id: int
    kind: str
    key: str
    data: dict[str, Any]
    created_at: int


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Something that changes under a name that stays (a schedule, a task); its version counts the changes."""

    kind: str
    key: str
    version: int
    data: dict[str, Any]
    created_at: int
    updated_at: int
    gone: bool = False

    @classmethod
    def next(
        cls, before: "Document | None", kind: str, key: str, data: dict[str, Any], now: int
    ) -> "Document":
        """What is written in the place of another, or of one that is gone: its version goes on."""
        return cls(
            kind=kind,
            key=key,
            version=(before.version if before else 0) + 1,
            data=data,
            created_at=before.created_at if before and not before.gone else now,
            updated_at=now,
        )

    def changed(self, data: dict[str, Any], now: int) -> "Document":
        """Its next version."""
        return msgspec.structs.replace(self, version=self.version + 1, data=data, updated_at=now, gone=False)

    def gone_at(self, now: int) -> "Document":
        """Its last version, until somebody writes it anew."""
        return msgspec.structs.replace(self, version=self.version + 1, data={}, updated_at=now, gone=True)


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """How far a named reader of the ledger has come; with `hold`, nothing after it may be pruned."""

    name: str
    seq: int
    hold: bool
    updated_at: int
