"""What the service answers with. Fields that a newer service adds are ignored."""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    slug: str
    display_name: str
    description: str
    state: str
    created_at: str


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    scope_id: str
    slug: str
    display_name: str
    description: str
    ordering: str
    consumer_mode: str
    visibility_timeout_s: float
    max_retries: int
    max_depth: int | None
    overflow_policy: str
    state: str
    system: bool
    depth_pending: int
    depth_claimed: int


class Message(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    scope: str
    queue: str
    state: str
    message_type: str
    content_type: str
    body: Any
    labels: dict[str, Any]
    priority_tier: str
    priority_score: int
    attempts: int
    correlation_id: str | None
    causation_id: str | None
    parent_id: str | None
    hops: int
    idempotency_key: str | None
    failure_reason: str | None
    result: Any
    hitl_spec: dict[str, Any] | None
    created_at: str
    completed_at: str | None
    visible_at: str | None = None
    claim_token: str | None = None
    claim_expires_at: str | None = None
    seen: str | None = None


class CompletionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one of many messages that were completed together: the message, or the error."""

    message_id: str
    status: int
    message: Message | None = None
    error: dict[str, Any] | None = None


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    trigger: str
    enabled: bool
    priority: int
    action: dict[str, Any]
    conditions: list[dict[str, Any]]
    expression: str | None
    tripped_until: str | None


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """`secret` only in the answer that made it."""

    id: str
    name: str
    hint: str
    permissions: list[str]
    role: str | None
    expires_at: str | None
    secret: str | None = None


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Some of a list; `next_cursor` leads to the next ones."""

    items: list[T]
    next_cursor: str | None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)


class StreamEvent(msgspec.Struct, frozen=True):
    """`kind` is `chunk`, or how the stream ended: then `data` is the stream."""

    kind: str
    data: dict[str, Any]


def read_event(kind: str, text: str) -> StreamEvent:
    return StreamEvent(kind, msgspec.json.decode(text, type=dict[str, Any]))
