"""Rows of a frame as messages of a queue, published durably and once for each key: by the process that owns
the store, over HTTP, or into the store's file when nobody has it open."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from postroom.client import Client
from postroom.errors import InvalidField
from postroom.ids import RandomIds
from postroom.kernel import commands as c
from postroom.kernel.engine import Engine
from postroom.kernel.housekeeping.housekeepers import Retention
from postroom.kernel.limits import Limits
from postroom.kernel.model import NewMessage
from postroom.kernel.transitions.context import KernelEnvironment
from postroom.pipeline.sources.sqlite import open_source
from postroom.stores.sqlite import SqliteStore

AT_ONCE = 1000
_FIELDS = frozenset(
    {
        "message_type", "priority_tier", "priority_score", "correlation_id", "causation_id", "channel",
        "sender", "sender_id", "agent", "source_id", "ttl_s", "delay_s",
    }
)  # fmt: skip


# What the service calls otherwise.
_OVER_HTTP = {
    "message_type": "message_type", "priority_tier": "priority_tier", "priority_score": "priority_score",
    "correlation_id": "correlation_id", "causation_id": "causation_id", "ttl_s": "ttl_seconds",
    "delay_s": "delay_seconds",
}  # fmt: skip


class PublishRow(msgspec.Struct, frozen=True):
    key: str
    body: Any
    fields: dict[str, Any]


def read_rows(batch: pa.RecordBatch, *, key: str | None, body: str | None) -> list[PublishRow]:
    """A row's body is the column named so, else all columns that are no fields of a message.

    Without a key column the key is made from the content, so equal rows are one message.
    """
    for name in (key, body):
        if name is not None and name not in batch.schema.names:
            raise InvalidField(name, "is not a column of the frame")
    found = []
    for row in batch.to_pylist():
        fields = {name: value for name, value in row.items() if name in _FIELDS and value is not None}
        rest = {name: value for name, value in row.items() if name not in _FIELDS and name != key}
        content = row[body] if body is not None else rest
        if isinstance(content, str) and body is not None:
            content = _opened(content)
        plain = msgspec.to_builtins(content)
        own = row[key] if key is not None else None
        if own is None:
            own = hashlib.sha256(msgspec.json.encode([plain, fields], order="deterministic")).hexdigest()
        found.append(PublishRow(str(own), plain, fields))
    return found


def _opened(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def publish(path: str, queue: str, wanted: list[PublishRow]) -> int:
    """All of them, a thousand in a transaction; how many were new."""
    import random

    store = SqliteStore(Path(open_source(path).path))
    env = KernelEnvironment(RandomIds(), Limits(), Retention(), random.Random())
    engine, new = Engine(env), 0
    try:
        for first in range(0, len(wanted), AT_ONCE):
            messages = [
                NewMessage(body=each.body, idempotency_key=each.key, **each.fields)
                for each in wanted[first : first + AT_ONCE]
            ]
            tx = store.begin()
            try:
                applied = engine.apply(tx, [c.Publish(queue=queue, messages=messages, actor="spark")])
                new += sum(receipt.created for receipt in applied.outcomes[0].result())
            except BaseException:
                store.rollback(tx)
                raise
            store.commit(tx)
    finally:
        store.close()
    return new


def publish_over_http(url: str, token: str, queue: str, wanted: list[PublishRow]) -> int:
    """All of them, a thousand in a request; how many. Whoever repeats it finds the keys, and adds nothing."""
    messages = [_over_http(each) for each in wanted]
    with Client(url, token) as client:
        for first in range(0, len(messages), AT_ONCE):
            client.publish_many(queue, messages[first : first + AT_ONCE])
    return len(messages)


def _over_http(row: PublishRow) -> dict[str, Any]:
    for name in row.fields:
        if name not in _OVER_HTTP:
            raise InvalidField(name, "is said by whoever publishes; over HTTP a row cannot say it")
    fields = {_OVER_HTTP[name]: value for name, value in row.fields.items()}
    return {"body": row.body, "idempotency_key": row.key, **fields}
