"""Webhooks: who wants to be told of which events, and what they are told."""

from typing import Any

import msgspec

from postroom.clock import iso
from postroom.errors import InvalidField
from postroom.kernel import commands as c
from postroom.kernel import jsontext
from postroom.kernel.model import NewMessage

KIND = "webhook"
# Deliveries are messages of the system itself, out of every tenant's sight.
TENANT = ""
SCOPE = "webhooks"
QUEUE = "webhooks/deliveries"
MESSAGE = "webhook.delivery"
PREFIX = "scaiqueue."
EVENTS = (
    "scaiqueue.message.published",
    "scaiqueue.message.claimed",
    "scaiqueue.message.completed",
    "scaiqueue.message.dead_lettered",
)
TEST = "scaiqueue.webhook.test"
# The queue allows more than any webhook; each webhook has its own limit.
SETTINGS = {"max_retries": 100, "backoff_base_s": 1.0, "backoff_cap_s": 300.0, "visibility_timeout_s": 60.0}


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    tenant: str
    url: str
    events: tuple[str, ...]
    secret: str
    status: str = "active"
    max_retries: int = 5
    description: str = ""
    own_mail: bool = False
    """Whether it is told of the office's own mail: only what the owner has made is."""
    created_at: int = 0
    updated_at: int = 0
    acts_as: tuple[tuple[str, str], ...] | None = None
    """Whom lists must let in for it to be told: who made it. None: an administrator, or nobody knows."""
    problem: str = ""
    """Why it was switched off, when nobody did it."""

    def wants(self, event_type: str, time: int) -> bool:
        """Whether it is told of an event of that time; never of what was before it."""
        return self.status == "active" and event_type in self.events and time >= self.created_at


def read(data: dict[str, Any]) -> Webhook:
    return msgspec.convert(data, Webhook)


def check_events(events: list[str]) -> tuple[str, ...]:
    chosen = EVENTS if events in ([], ["*"]) else tuple(dict.fromkeys(events))
    for name in chosen:
        if name not in EVENTS:
            raise InvalidField("events", f"{name!r} is none; known are {', '.join(EVENTS)}")
    return chosen


def delivery(hook: Webhook, told: dict[str, Any], message_id: str | None) -> c.Publish:
    """The command that has an event delivered."""
    message = NewMessage(
        body=told,
        message_type=MESSAGE,
        labels={"webhook": hook.id, "tenant": hook.tenant, "about": message_id or ""},
        idempotency_key=f"{hook.id}:{told['event_id']}",
        source_type="webhook",
        source_id=hook.id,
    )
    return c.Publish(queue=QUEUE, messages=[message], actor="webhooks", tenant=TENANT)


def payload_of(body: bytes | None) -> dict[str, Any]:
    """What a delivery tells; nothing when it was erased, and of tests nothing but the webhook itself."""
    told = jsontext.decode(body) if body else None
    payload = told.get("payload") if isinstance(told, dict) else None
    return payload if isinstance(payload, dict) else {}


def make_queue() -> tuple[c.Command, ...]:
    """The scope and queue of deliveries, once."""
    who: dict[str, Any] = {"actor": "webhooks", "tenant": TENANT, "exist_ok": True}
    return (c.CreateScope(slug=SCOPE, **who), c.CreateQueue(queue=QUEUE, settings=SETTINGS, **who))


def envelope(
    event_type: str, event_id: str, tenant: str, payload: dict[str, Any], time: int
) -> dict[str, Any]:
    return {
        "event_type": event_type,
        "event_id": event_id,
        "source": "scaiqueue",
        "tenant_id": tenant,
        "partner_id": None,
        "payload": payload,
        "timestamp": iso(time),
    }
