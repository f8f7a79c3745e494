"""From what a publisher says to the rows and contents of new messages, and what the ledger says of them."""

from functools import lru_cache
from typing import Any

from postroom.clock import micros
from postroom.kernel import checks, jsontext
from postroom.kernel.digests import DIGEST, content_digest
from postroom.kernel.model import NewMessage, Queue, Subscription
from postroom.kernel.ordering import sort_key
from postroom.kernel.rows import Content, Row
from postroom.kernel.states import State
from postroom.kernel.transitions.context import TransitionContext, change_data, earlier

Draft = tuple[Row, Content]


def draft_message(
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


def draft_deliveries(ctx: TransitionContext, original: Row, subscriptions: list[Subscription]) -> list[Row]:
    """One row per subscriber, each with its own progress, retries and end."""
    visible = original.visible_at
    if visible is not None and visible <= ctx.now:
        visible = None
    due_at = earlier(visible, original.expires_at)
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
            due_at=None if due_at is None else max(due_at, ctx.now),
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


# What the ledger says of a new message


def published_data(row: Row, content: Content) -> str:
    """For plain messages cut from a text made before."""
    before, between, after = published_data_parts(row, content)
    size = len(content.body) if content.body else 0
    return f"{before}{size}{between}{content_digest(row.id, content)}{after}"


def delivery_data(row: Row, content: Content) -> str:
    """Of the copy of a message for one subscriber."""
    return change_data(row, {"parent": row.parent_id, DIGEST: content_digest(row.id, content)})


def published_data_parts(row: Row, content: Content) -> tuple[str, str, str]:
    """The same for any body: what comes before its size, between that and its digest, and after."""
    if row.hop or row.parent_id or content.agent is not None or content.channel is not None:
        return _parts(change_data(row, published_details(row, content, size=0)))
    return _plain_data(row.message_type, row.priority_tier, row.state)


@lru_cache(maxsize=1000)
def _plain_data(kind: str, tier: str, state: str) -> tuple[str, str, str]:
    return _parts(jsontext.text({"type": kind, "tier": tier, "bytes": 0, "state": state, "attempts": 0}))


def _parts(text: str) -> tuple[str, str, str]:
    before, mark, after = text.partition('"bytes":0')
    return before + mark[:-1], f',"{DIGEST}":"', f'"{after}'


def published_details(row: Row, content: Content, size: int | None = None) -> dict[str, Any]:
    data: dict[str, Any] = {"type": row.message_type, "tier": row.priority_tier}
    data["bytes"] = size if size is not None else len(content.body) if content.body else 0
    if size is None:
        data[DIGEST] = content_digest(row.id, content)
    if row.hop:
        data["hop"] = row.hop
    if row.parent_id is not None:
        data["parent"] = row.parent_id
    if content.agent is not None:
        data["agent"] = content.agent
    if content.channel is not None:
        data["channel"] = content.channel
    return data
