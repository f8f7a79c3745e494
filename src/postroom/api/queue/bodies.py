"""What callers may say, field by field. Unknown fields are refused, so that a slip of the pen is noticed."""

import binascii
import re
from datetime import datetime
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from postroom.api.openapi import says
from postroom.api.queue.views import body_from
from postroom.clock import from_datetime
from postroom.errors import InvalidField
from postroom.kernel import checks
from postroom.kernel.access.permissions import PREFIX, Permission
from postroom.kernel.model import AfterFailed, ConsumerMode, NewMessage, Ordering, Overflow
from postroom.kernel.ordering import TIER_RANK
from postroom.kernel.schedules.due import Missed
from postroom.services.claims import MOST_CLAIMED, MOST_COMPLETED, MOST_WAIT_S
from postroom.services.messages import MOST_PUBLISHED

# Neither yes and no nor a text is a number.
Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


def _time_text(value: Any) -> Any:
    """A bare number would be taken for seconds since 1970, which nobody means."""
    if isinstance(value, bool | int | float) or (isinstance(value, str) and _NUMBER.fullmatch(value.strip())):
        raise ValueError("must be a time like 2026-11-16T12:00:00Z")
    return value


_NUMBER = re.compile(r"[+-]?[0-9.]+")
Moment = Annotated[datetime, BeforeValidator(_time_text)]


def _say_bounds(schema: dict[str, Any]) -> None:
    """What the kernel checks of a queue's settings; the document says it too."""
    for name, (least, most) in checks.SETTING_RANGES.items():
        schema["properties"][name]["anyOf"][0] |= {"minimum": least, "maximum": most}
    words = {"ordering": Ordering, "consumer_mode": ConsumerMode, "overflow_policy": Overflow}
    for name, known in words.items():
        schema["properties"][name]["anyOf"][0]["enum"] = [str(word) for word in known]


Slug = Annotated[
    str,
    Field(
        min_length=1,
        max_length=127,
        examples=["orders"],
        json_schema_extra={"pattern": f"^{checks.QUEUE_SLUG.pattern}$"},
    ),
]
Text = Annotated[str, Field(max_length=512)]
Lease = Annotated[Number, Field(ge=0.001, le=24 * 3600)]
LONGEST_S = checks.YEAR_S
# With or without what stands before it in tokens of ScaiQueue.
PermissionWord = Annotated[
    str, says(enum=[f"{before}{each}" for before in ("", PREFIX) for each in Permission])
]


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

    model_config = ConfigDict(extra="forbid", json_schema_extra=_say_bounds)

    display_name: Text | None = None
    description: Text | None = None
    ordering: str | None = Field(default=None, examples=["priority"])
    consumer_mode: str | None = Field(default=None, examples=["competing"])
    visibility_timeout_s: Number | None = None
    max_retries: Whole | None = None
    backoff_base_s: Number | None = None
    backoff_cap_s: Number | None = None
    concurrency: Whole | None = None
    rate_limit: Whole | None = Field(default=None, description="Most messages handed out in a period")
    rate_period_s: Number | None = None
    rate_key: Text | None = Field(default=None, description="A label: the limit holds for each value of it")
    max_depth: Whole | None = None
    overflow_policy: str | None = None
    default_ttl_s: Number | None = None
    schema_: str | None = Field(default=None, alias="schema", description="A name, or name@version")
    retention_s: Number | None = None
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


_NULLABLE = frozenset(
    {"concurrency", "rate_limit", "rate_key", "max_depth", "default_ttl_s", "schema", "retention_s"}
)


class NewQueue(QueueChanges):
    slug: Slug


class NewMessageBody(RequestBody):
    message_type: Text = "message"
    body: Any = None
    content_type: Text = "application/json"
    labels: dict[str, Any] = {}
    priority_tier: Annotated[str, Field(json_schema_extra={"enum": list(TIER_RANK)})] = "normal"
    priority_score: Annotated[Whole, Field(json_schema_extra={"minimum": 0, "maximum": 1000})] = 500
    ttl_seconds: Annotated[Number, Field(ge=0.001, le=LONGEST_S)] | None = None
    deadline: Moment | None = None
    delay_until: Moment | None = None
    delay_seconds: Annotated[Number, Field(ge=0, le=LONGEST_S)] | None = None
    idempotency_key: Text | None = None
    correlation_id: Text | None = None
    causation_id: Text | None = None
    schema_: str | None = Field(default=None, alias="schema", description="Check the body against this one")
    hitl_spec: dict[str, Any] | None = None
    after: list[str] | None = Field(default=None, description="Messages that must have completed before")
    after_failed: Annotated[str, Field(json_schema_extra={"enum": list(AfterFailed)})] = "dead_letter"

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
            after=self.after,
            after_failed=cast(AfterFailed, self.after_failed),  # the kernel checks it
        )


def _plain_type(content_type: str) -> str:
    """JSON is always UTF-8, so that a client who says so says nothing new."""
    kind, _, _ = content_type.partition(";")
    return checks.JSON if kind.strip().lower() == checks.JSON else content_type


class MessageBatchBody(RequestBody):
    messages: Annotated[list[NewMessageBody], Field(min_length=1, max_length=MOST_PUBLISHED)]


class ClaimWish(RequestBody):
    batch_size: Annotated[Whole, Field(ge=1, le=MOST_CLAIMED)] = 1
    wait_s: Annotated[Number, Field(ge=0, le=MOST_WAIT_S)] = 0
    visibility_timeout_s: Lease | None = None
    labels: dict[str, Any] = {}
    subscription: Text | None = None
    worker: Text | None = Field(default=None, description="A name beside the key's, for people")


class ClaimBody(RequestBody):
    claim_token: Text | None = Field(default=None, description="From the claim; else the key must hold it")


class Completion(ClaimBody):
    result: Any = None


class CompletionItem(Completion):
    message_id: Text


class CompletionBatchBody(RequestBody):
    messages: Annotated[list[CompletionItem], Field(min_length=1, max_length=MOST_COMPLETED)]


class FailureReport(ClaimBody):
    reason: str = "failed"
    retry: bool = True
    delay_s: Annotated[Number, Field(ge=0, le=LONGEST_S)] | None = None


class Extension(ClaimBody):
    extend_s: Lease | None = None
    visibility_timeout_s: Lease | None = None


class Snoozing(ClaimBody):
    seconds: Annotated[Number, Field(ge=0, le=LONGEST_S)]
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


class ScheduleBody(RequestBody):
    """When it comes: one of `cron`, `every_s` and `at`."""

    queue_id: str = Field(description="The queue's slug, or its id", examples=["orders"])
    body: Any = None
    cron: Annotated[str, Field(max_length=200, examples=["0 3 * * *"])] = ""
    zone: Text = "UTC"
    every_s: Annotated[Number, Field(ge=1, le=LONGEST_S)] | None = None
    at: Moment | None = None
    missed: Annotated[str, Field(json_schema_extra={"enum": list(Missed)})] = "once"
    overlap: bool = False
    enabled: bool = True
    message_type: Text = "message"
    priority_tier: Annotated[str, Field(json_schema_extra={"enum": list(TIER_RANK)})] = "normal"
    labels: dict[str, Any] = {}

    def fields(self) -> dict[str, Any]:
        return {**self.model_dump(exclude={"queue_id", "at"}), "at": moment(self.at)}


class SeenKey(RequestBody):
    message_id: Text | None = None
    key: Text | None = Field(default=None, description="Any text; instead of a message id")
