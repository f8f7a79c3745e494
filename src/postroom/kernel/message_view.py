"""Stored rows as the messages that users see."""

from collections.abc import Callable

from postroom.kernel import checks, jsontext
from postroom.kernel.model import Message, Tier
from postroom.kernel.rows import Stored
from postroom.kernel.states import State

_STATES = {state.value: state for state in State}
_TIERS = {tier.value: tier for tier in Tier}


class MessageViews:
    """Names of queues and subscriptions by number. They never change, so each is asked for once."""

    def __init__(
        self, find_queue: Callable[[int], tuple[str, str]], find_subscription: Callable[[int], str | None]
    ) -> None:
        self._find_queue = find_queue
        self._find_subscription = find_subscription
        self._queues: dict[int, tuple[str, str]] = {}
        self._subscriptions: dict[int, str] = {}

    def queue(self, queue_id: int) -> tuple[str, str]:
        found = self._queues.get(queue_id)
        if found is None:
            found = self._queues[queue_id] = self._find_queue(queue_id)
        return found

    def subscription(self, subscription_id: int) -> str:
        """One that is gone is named by its number."""
        found = self._subscriptions.get(subscription_id)
        if found is None:
            name = self._find_subscription(subscription_id)
            found = self._subscriptions[subscription_id] = name or f"#{subscription_id}"
        return found

    def message(self, stored: Stored, *, with_token: bool = False) -> Message:
        row, content = stored.row, stored.content
        scope, queue = self.queue(row.queue_id)
        origin = row.origin_queue_id
        body = content.body
        if body is not None:
            if content.content_type == checks.JSON:
                body = jsontext.decode(body)
            elif content.content_type.startswith("text/"):
                body = body.decode("utf-8", "replace")
        return Message(
            row.id,
            row.tenant,
            scope,
            queue,
            None if row.subscription_id is None else self.subscription(row.subscription_id),
            _STATES[row.state],
            row.message_type,
            content.content_type,
            body,
            jsontext.decode(content.labels) if content.labels else {},
            _TIERS[row.priority_tier],
            row.priority_score,
            row.attempts,
            row.correlation_id,
            row.causation_id,
            row.parent_id,
            row.hop,
            row.idempotency_key,
            row.created_at,
            row.updated_at,
            row.finished_at,
            row.expires_at,
            row.visible_at,
            content.ttl_s,
            content.deadline,
            content.delay_until,
            row.claimed_by,
            row.claimed_at,
            row.lease_until,
            row.token if with_token else None,
            row.failure_reason,
            row.failure_kind,
            jsontext.decode_any(row.result),
            jsontext.decode_any(content.hitl_spec),
            None if origin is None else self.queue(origin)[1],
            content.source_type,
            content.source_id,
            content.channel,
            content.sender,
            content.sender_id,
            content.agent,
            content.from_agent,
            jsontext.decode(content.files) if content.files else [],
            jsontext.decode(content.metadata) if content.metadata else {},
            stored.archived,
        )
