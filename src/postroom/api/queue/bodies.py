"""What callers may say, field by field. Unknown fields are refused, so that a slip of the pen is noticed."""

import binascii
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from postroom.api.queue.views import body_from
from postroom.clock import from_datetime
from postroom.errors import InvalidField
from postroom.kernel import checks
from postroom.kernel.model import NewMessage
from postroom.services.claims import MOST_CLAIMED, MOST_WAIT_S
from postroom.services.messages import MOST_PUBLISHED

Slug = Annotated[str, Field(min_length=1, max_length=127, examples=["orders"])]
Text = Annotated[str, Field(max_length=512)]
Lease = Annotated[float, Field(ge=0.001, le=24 * 3600, allow_inf_nan=False)]
LONGEST_S = checks.YEAR_S


def moment(time: datetime | None) -> int | None:
    return None if time is None else from_datetime(time)


class RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewScope(RequestBody):
    slug: Slug
    display_name: Text = ""
    description: Text | None = None


class ScopeChanges(RequestBody):
    display_name: Text | None = None
    description: Text | None = None


class QueueChanges(RequestBody):
    """Any setting of a queue; what is not named stays."""

    display_name: Text | None = None
    description: Text | None = None
    ordering: str | None = Field(default=None, examples=["priority"])
    consumer_mode: str | None = Field(default=None, examples=["competing"])
    visibility_timeout_s: float | None = None
    max_retries: int | None = None
    backoff_base_s: float | None = None
    backoff_cap_s: float | None = None
    concurrency: int | None = None
    max_depth: int | None = None
    overflow_policy: str | None = None
    default_ttl_s: float | None = None
    schema_: str | None = Field(default=None, alias="schema", description="A name, or name@version")
    retention_s: float | None = None
    purpose: str | None = Field(default=None, description="For canvases of clients; not kept")

    def settings(self) -> dict[str, Any]:
        given = self.model_dump(exclude_unset=True, by_alias=True)
        for name in ("slug", "purpose"):
            given.pop(name, None)
        # Some clients write the ordering where the consumer mode belongs.
        if given.get("consumer_mode") in ("fifo", "priority", "deadline"):
            given.setdefault("ordering", given["consumer_mode"])
            given["consumer_mode"] = "competing"
        return {name: value for name, value in given.items() if value is not None or name in _NULLABLE}


_NULLABLE = frozenset({"concurrency", "max_depth", "default_ttl_s", "schema", "retention_s"})


class NewQueue(QueueChanges):
    slug: Slug


class NewMessageBody(RequestBody):
    message_type: Text = "message"
    body: Any = None
    content_type: Text = "application/json"
    labels: dict[str, Any] = {}
    priority_tier: str = "normal"
    priority_score: int = 500
    ttl_seconds: Annotated[float, Field(ge=0.001, le=LONGEST_S, allow_inf_nan=False)] | None = None
    deadline: datetime | None = None
    delay_until: datetime | None = None
    delay_seconds: Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False)] | None = None
    idempotency_key: Text | None = None
    correlation_id: Text | None = None
    causation_id: Text | None = None
    schema_: str | None = Field(default=None, alias="schema", description="Check the body against this one")
    hitl_spec: dict[str, Any] | None = None

    def draft(self) -> NewMessage:
        """Its author is whoever calls."""
        content_type = _plain_type(self.content_type)
        try:
            content = body_from(content_type, self.body)
        except (binascii.Error, ValueError, TypeError):
            raise InvalidField("body", f"of type {content_type} must be base64") from None
        return NewMessage(
            body=content,
            message_type=self.message_type,
            content_type=content_type,
            priority_tier=self.priority_tier,
            priority_score=self.priority_score,
            labels=self.labels or None,
            ttl_s=self.ttl_seconds,
            deadline=moment(self.deadline),
            delay_until=moment(self.delay_until),
            delay_s=self.delay_seconds,
            idempotency_key=self.idempotency_key,
            correlation_id=self.correlation_id,
            causation_id=self.causation_id,
            hitl_spec=self.hitl_spec,
        )


def _plain_type(content_type: str) -> str:
    """JSON is always UTF-8, so that a client who says so says nothing new."""
    kind, _, _ = content_type.partition(";")
    return checks.JSON if kind.strip().lower() == checks.JSON else content_type


class MessageBatchBody(RequestBody):
    messages: Annotated[list[NewMessageBody], Field(min_length=1, max_length=MOST_PUBLISHED)]


class ClaimWish(RequestBody):
    batch_size: Annotated[int, Field(ge=1, le=MOST_CLAIMED)] = 1
    wait_s: Annotated[float, Field(ge=0, le=MOST_WAIT_S)] = 0
    visibility_timeout_s: Lease | None = None
    labels: dict[str, Any] = {}
    subscription: Text | None = None
    worker: Text | None = Field(default=None, description="A name beside the key's, for people")


class ClaimBody(RequestBody):
    claim_token: Text | None = Field(default=None, description="From the claim; else the key must hold it")


class Completion(ClaimBody):
    result: Any = None


class FailureReport(ClaimBody):
    reason: str = "failed"
    retry: bool = True
    delay_s: Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False)] | None = None


class Extension(ClaimBody):
    extend_s: Lease | None = None
    visibility_timeout_s: Lease | None = None


class Snoozing(ClaimBody):
    seconds: Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False)]
    reason: str | None = None


class Reason(RequestBody):
    reason: str = "cancelled"


class NewSchema(RequestBody):
    name: Text
    version: int | str | None = None
    schema_: dict[str, Any] = Field(alias="schema")


class NewSubscription(RequestBody):
    queue_id: str
    name: Text
    earliest: bool = False


class SeenKey(RequestBody):
    message_id: Text | None = None
    key: Text | None = Field(default=None, description="Any text; instead of a message id")
