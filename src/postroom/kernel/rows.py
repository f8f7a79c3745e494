"""A message as stores keep it: a small row that changes, and its content that never does.

They are apart so that a change of state does not rewrite a large body. Field order is column order. None of
these can be part of a cycle, so the garbage collector need not look at them.
"""

import msgspec


class Row(msgspec.Struct, gc=False):
    id: str
    tenant: str
    scope_id: int
    queue_id: int
    line: int
    subscription_id: int | None
    state: str
    sort_key: int
    due_at: int | None
    message_type: str
    priority_tier: str
    priority_score: int
    created_at: int
    updated_at: int
    expires_at: int | None
    visible_at: int | None
    correlation_id: str | None
    causation_id: str | None
    parent_id: str | None
    hop: int
    idempotency_key: str | None
    attempts: int = 0
    claims: int = 0
    token: str | None = None
    claimed_by: str | None = None
    claimed_at: int | None = None
    lease_until: int | None = None
    failure_reason: str | None = None
    failure_kind: str | None = None
    result: bytes | None = None
    finished_at: int | None = None
    origin_queue_id: int | None = None
    seq: int = 0


class Content(msgspec.Struct, gc=False):
    content_type: str
    body: bytes | None
    labels: str | None
    ttl_s: float | None
    deadline: int | None
    delay_until: int | None
    hitl_spec: str | None
    source_type: str
    source_id: str | None
    channel: str | None
    sender: str | None
    sender_id: str | None
    agent: str | None
    from_agent: str | None
    files: str | None
    metadata: str | None


ROW_FIELDS = Row.__struct_fields__
CONTENT_FIELDS = Content.__struct_fields__


class Stored(msgspec.Struct, gc=False):
    """A row with its content, as a claim or a read needs them."""

    row: Row
    content: Content
    archived: bool = False
