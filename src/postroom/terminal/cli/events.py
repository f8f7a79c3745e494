"""Ledger events in words, one line each."""

from typing import Any

import msgspec

from postroom.clock import SECOND, iso
from postroom.kernel.ledger import Event
from postroom.terminal.cli.output import clean, short, span


def what(event: Event) -> str:
    """What happened, without who and when."""
    try:
        data = event.details
        return _WORDS.get(event.type, _plain)(event, data)
    except (msgspec.DecodeError, TypeError, KeyError, ValueError, AttributeError):
        return f"{event.type} {event.data}"


def line(event: Event) -> str:
    place = "/".join(part for part in (event.scope, event.queue) if part)
    subject = " ".join(part for part in (place, event.message_id) if part)
    text = f"{event.seq:>7}  {iso(event.time)}  {subject}  {what(event)}  ({event.actor})"
    return clean(text)


def _plain(event: Event, data: dict[str, Any]) -> str:
    name = event.type.removeprefix("message.").replace(".", " ").replace("_", " ")
    known = {key: value for key, value in data.items() if key not in ("state", "attempts")}
    return f"{name} {short(known)}" if known else name


def _published(event: Event, data: dict[str, Any]) -> str:
    text = f"published as {data['state']}"
    if "tier" in data:
        text += f", priority {data['tier']}, {data['bytes']:,} bytes"
    if "deliveries" in data:
        text += f", {data['deliveries']} deliveries"
    if "parent" in data and "tier" not in data:
        text += f", a delivery of {data['parent']}"
    return text


def _claimed(event: Event, data: dict[str, Any]) -> str:
    lease = (data["lease_until"] - event.time) / SECOND
    return f"claimed by {data['worker']} for {span(lease)}, attempt {data['attempts']}"


def _extended(event: Event, data: dict[str, Any]) -> str:
    return f"lease extended for {span((data['lease_until'] - event.time) / SECOND)}"


def _failed(event: Event, data: dict[str, Any]) -> str:
    return f"attempt {data['attempts']} failed: {data['reason']}; {_again(event, data)}"


def _snoozed(event: Event, data: dict[str, Any]) -> str:
    why = f": {data['reason']}" if data.get("reason") else ""
    return f"snoozed{why}; {_again(event, data)}"


def _again(event: Event, data: dict[str, Any]) -> str:
    if data.get("visible_at") is None:
        return "again at once"
    return f"again after {span((data['visible_at'] - event.time) / SECOND)}"


def _dead(event: Event, data: dict[str, Any]) -> str:
    return f"became a dead letter of {data['from']} after {data['attempts']} attempts: {data['reason']}"


def _cancelled(event: Event, data: dict[str, Any]) -> str:
    return f"cancelled: {data['reason']}"


def _lease_expired(event: Event, data: dict[str, Any]) -> str:
    return f"given back: the lease of {data['worker']} ran out on attempt {data['attempts']}"


_WORDS = {
    "message.published": _published,
    "message.ready": lambda event, data: "ready to be claimed",
    "message.claimed": _claimed,
    "message.extended": _extended,
    "message.completed": lambda event, data: "completed",
    "message.failed": _failed,
    "message.released": lambda event, data: "released; the attempt does not count",
    "message.snoozed": _snoozed,
    "message.lease_expired": _lease_expired,
    "message.dead_lettered": _dead,
    "message.expired": lambda event, data: "expired before it was completed",
    "message.cancelled": _cancelled,
    "message.replayed": lambda event, data: "replayed: sent back with a clean slate of attempts",
    "message.discarded": lambda event, data: "discarded",
}
