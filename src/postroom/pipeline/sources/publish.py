"""Rows of a frame as messages of a queue, published durably and once for each key."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

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


class PublishRow(msgspec.Struct, frozen=True):
    key: str
    body: Any
    fields: dict[str, Any]


def letters(batch: pa.RecordBatch, *, key: str | None, body: str | None) -> list[PublishRow]:
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
