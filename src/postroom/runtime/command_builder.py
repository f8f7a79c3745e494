"""From the calls of a room to the kernel's commands; the same for every kind of room."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack

from postroom.clock import from_datetime
from postroom.errors import ClaimLost, InvalidField
from postroom.kernel import commands as c
from postroom.kernel.model import LifecycleState, Message, NewMessage
from postroom.runtime.options import ScheduleOptions, check_names

Moment = datetime | int


class PublishOptions(TypedDict, total=False):
    """Everything that can be said about a message besides its body."""

    type: str
    content_type: str
    priority: str
    score: int
    labels: dict[str, Any]
    ttl: float
    deadline: Moment
    delay: float
    delay_until: Moment
    key: str
    correlation_id: str
    causation_id: str
    parent_id: str
    caused_by: Message
    hop: int
    hitl_spec: dict[str, Any]
    source_type: str
    source_id: str
    channel: str
    sender: str
    sender_id: str
    agent: str
    from_agent: str
    files: list[str]
    metadata: dict[str, Any]
    after: list[str]
    after_failed: str


_RENAMED = {
    "type": "message_type",
    "priority": "priority_tier",
    "score": "priority_score",
    "ttl": "ttl_s",
    "delay": "delay_s",
    "key": "idempotency_key",
}


def moment(field: str, value: Moment) -> int:
    if isinstance(value, datetime):
        return from_datetime(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidField(field, f"is {value!r}, must be a datetime or microseconds since 1970")
    return value


def place_state(state: str) -> LifecycleState:
    try:
        return LifecycleState(state)
    except ValueError:
        known = ", ".join(LifecycleState)
        raise InvalidField("state", f"is {state!r}, must be one of {known}") from None


class CommandBuilder:
    def __init__(self, actor: str, tenant: str) -> None:
        self.actor = actor
        self.tenant = tenant

    def message(self, body: Any, options: PublishOptions) -> NewMessage:
        if not options:
            return NewMessage(body=body, source_id=self.actor)
        check_names(options, PublishOptions.__annotations__, "publish")
        fields: dict[str, Any] = {"source_id": self.actor}
        for name, value in options.items():
            if value is None:
                continue
            if name == "caused_by":
                cause = value
                if not isinstance(cause, Message):
                    raise InvalidField("caused_by", "must be a message")
                fields.setdefault("correlation_id", cause.correlation_id)
                fields["causation_id"], fields["hop"] = cause.id, cause.hop + 1
            elif name in ("deadline", "delay_until"):
                fields[name] = moment(name, value)  # type: ignore[arg-type]
            else:
                fields[_RENAMED.get(name, name)] = value
        return NewMessage(body=body, **fields)

    def publish(self, queue: str, body: Any, options: PublishOptions) -> c.Publish | c.PublishLike:
        if not options:
            return c.PublishLike(queue=queue, bodies=[body], actor=self.actor, tenant=self.tenant)
        return c.Publish(
            queue=queue, messages=[self.message(body, options)], actor=self.actor, tenant=self.tenant
        )

    def publish_many(
        self, queue: str, bodies: Iterable[Any], **options: Unpack[PublishOptions]
    ) -> c.Publish | c.PublishLike:
        who: dict[str, Any] = {"actor": self.actor, "tenant": self.tenant}
        items = list(bodies)
        if not any(isinstance(item, NewMessage) for item in items):
            like = self.message(None, options) if options else None
            return c.PublishLike(queue=queue, bodies=items, like=like, **who)
        messages = [item if isinstance(item, NewMessage) else self.message(item, options) for item in items]
        return c.Publish(queue=queue, messages=messages, **who)

    def claim(
        self,
        queues: tuple[str, ...],
        limit: int | None,
        lease: float | None,
        subscription: str | None,
        worker: str | None,
        labels: dict[str, Any] | None = None,
        ids: Sequence[str] = (),
    ) -> c.Claim:
        return c.Claim(
            queues=queues,
            limit=limit,
            lease_s=lease,
            subscription=subscription,
            worker=worker or self.actor,
            labels=tuple(labels.items()) if labels else (),
            ids=tuple(ids),
            actor=self.actor,
            tenant=self.tenant,
        )

    def held(self, claimed: Message) -> dict[str, Any]:
        """What every command of a holder says."""
        if claimed.claim_token is None:
            raise ClaimLost(message_id=claimed.id, state=f"{claimed.state}, and was not claimed by this call")
        return {
            "message_id": claimed.id,
            "token": claimed.claim_token,
            "actor": self.actor,
            "tenant": self.tenant,
        }

    def complete(self, claimed: Message, result: Any) -> c.Complete:
        return c.Complete(result=result, **self.held(claimed))

    def complete_many(self, done: Iterable[tuple[Message, Any]]) -> c.CompleteMany:
        each = [(self.held(claimed), result) for claimed, result in done]
        claims = tuple((held["message_id"], held["token"], result) for held, result in each)
        return c.CompleteMany(done=claims, actor=self.actor, tenant=self.tenant)

    def fail(
        self, claimed: Message, reason: str, kind: str | None, retry: bool, delay: float | None
    ) -> c.Fail:
        return c.Fail(reason=reason, kind=kind, retry=retry, delay_s=delay, **self.held(claimed))

    def snooze(
        self, claimed: Message, seconds: float | None, until: Moment | None, reason: str | None
    ) -> c.Snooze:
        at = None if until is None else moment("until", until)
        return c.Snooze(until=at, seconds=seconds, reason=reason, **self.held(claimed))

    def schedule(self, name: str, queue: str, body: Any, options: ScheduleOptions) -> c.PutSchedule:
        check_names(options, ScheduleOptions.__annotations__, "a schedule")
        fields: dict[str, Any] = {**options, "queue": queue, "body": body}
        if fields.get("at") is not None:
            fields["at"] = moment("at", fields["at"])
        return c.PutSchedule(name=name, fields=fields, actor=self.actor, tenant=self.tenant)

    def record(self, kind: str, key: str, data: dict[str, Any], about: Message | None) -> c.AddRecord:
        return c.AddRecord(
            kind=kind,
            key=key,
            data=data,
            message_id=about.id if about else None,
            correlation_id=about.correlation_id if about else None,
            actor=self.actor,
            tenant=self.tenant,
        )
