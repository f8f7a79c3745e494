"""The nouns of the room as JSON documents: their fields by name, times in ISO 8601, hashes in hex."""

import base64
from typing import Any

import msgspec

from postroom.clock import iso
from postroom.kernel.ledger import Event, Head
from postroom.kernel.model import Counts, Message, Queue, Receipt, Schema, Scope, Subscription
from postroom.kernel.schedules.model import QueueSchedule
from postroom.runtime.queries import HousekeeperStatus

_TIMES = frozenset(
    {
        "created_at",
        "updated_at",
        "finished_at",
        "expires_at",
        "visible_at",
        "claimed_at",
        "claim_expires_at",
        "last_run_at",
        "next_at",
        "last_at",
        "at",
        "deadline",
        "delay_until",
        "time",
    }
)


def _fields(struct: msgspec.Struct) -> dict[str, Any]:
    return {
        name: iso(value) if name in _TIMES and value is not None else value
        for name, value in msgspec.structs.asdict(struct).items()
    }


def message(found: Message) -> dict[str, Any]:
    document = _fields(found)
    document["queue"] = found.path
    if isinstance(found.body, bytes):
        document["body"] = base64.b64encode(found.body).decode()
        document["body_encoding"] = "base64"
    return document


def receipt(given: Receipt) -> dict[str, Any]:
    return _fields(given)


def scope(found: Scope) -> dict[str, Any]:
    document = _fields(found)
    del document["id"]
    return document


def queue(found: Queue, counts: Counts | None = None) -> dict[str, Any]:
    document = {
        "queue": found.path,
        "state": found.state,
        "system": found.system,
        **msgspec.structs.asdict(found.settings),
        "created_at": iso(found.created_at),
        "updated_at": iso(found.updated_at),
    }
    if counts is not None:
        document["counts"] = msgspec.structs.asdict(counts)
    return document


def subscription(found: Subscription, counts: Counts | None = None) -> dict[str, Any]:
    document: dict[str, Any] = {
        "queue": found.queue,
        "name": found.name,
        "created_at": iso(found.created_at),
    }
    if counts is not None:
        document["counts"] = msgspec.structs.asdict(counts)
    return document


def schedule(found: QueueSchedule) -> dict[str, Any]:
    return _fields(found)


def schema(found: Schema) -> dict[str, Any]:
    return _fields(found)


def housekeeper(found: HousekeeperStatus) -> dict[str, Any]:
    return _fields(found)


def event(found: Event) -> dict[str, Any]:
    document = _fields(found)
    try:
        document["data"] = found.details
    except (msgspec.DecodeError, TypeError):  # somebody has laid hands on it
        document["data"] = str(found.data)
    for name in ("previous_hash", "hash"):
        document[name] = hexed(document[name])
    return document


def head(found: Head) -> dict[str, Any]:
    return {"seq": found.seq, "hash": hexed(found.hash), "time": iso(found.time) if found.time else None}


def hexed(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
