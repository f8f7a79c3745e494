"""What the work-queue service asks of the kernel besides the queue's own commands, as data."""

from typing import Any

import msgspec

from postroom.kernel.commands import Command
from postroom.kernel.ports import AuditEntry


class PutServiceDocument(Command, frozen=True):
    """Write a document of the service whole. `note` is what the ledger says; the data itself stays out of it.

    With `new`, refused when there is one already under this key.
    """

    kind: str
    key: str
    data: dict[str, Any]
    scope: str | None = None
    note: dict[str, Any] = msgspec.field(default_factory=dict)
    new: bool = False
    label: str = ""


class DropServiceDocument(Command, frozen=True):
    kind: str
    key: str
    scope: str | None = None
    note: dict[str, Any] = msgspec.field(default_factory=dict)


class RecordAudit(Command, frozen=True):
    """Keep what was asked and what came of it."""

    entries: tuple[AuditEntry, ...]


class ShareRequestCounts(Command, frozen=True):
    """Tell the other processes how many requests this one has let through in the last minute, by name."""

    process: str
    counts: dict[str, int]


class ListProcesses(Command, frozen=True):
    """Which processes have told of themselves, and how long ago, by the store's own clock.

    With `process`, that one tells first: what it is, or with `ended` that it is no more.
    """

    process: str | None = None
    data: dict[str, Any] = msgspec.field(default_factory=dict)
    ended: bool = False


class AnswerReview(Command, frozen=True):
    """A person's decision on a review. `seen` is the mark of what they were shown."""

    message_id: str
    answer: dict[str, Any]
    reviewer: str = ""
    token: str | None = None
    seen: str | None = None


class OpenStream(Command, frozen=True):
    """A sequence of parts that is written while it is read. On closing it becomes a message of `queue`."""

    scope: str
    stream_id: str
    queue: str | None = None
    content_type: str = "text/plain"
    message_type: str = "stream"
    correlation_id: str | None = None
    labels: dict[str, Any] = msgspec.field(default_factory=dict)


class AppendChunks(Command, frozen=True):
    scope: str
    stream_id: str
    chunks: tuple[tuple[int, bytes], ...]


class CloseStream(Command, frozen=True):
    """The parts are all there, or (`abort`) there will be no more."""

    scope: str
    stream_id: str
    total_chunks: int | None = None
    abort: bool = False
    reason: str | None = None


class Erase(Command, frozen=True):
    """One step of an erasure: up to `limit` messages after a place. Without `execute` it only counts.

    With `queue_ids`, nothing is found that lies in other queues, or died in them.
    """

    job_id: str
    scope: str | None
    subject: dict[str, Any]
    mode: str = "erase"
    execute: bool = False
    after: int = 0
    limit: int = 1000
    queue_ids: tuple[int, ...] | None = None


class EraseEchoes(Command, frozen=True):
    """One step: empty what was told to others of erased messages."""

    message_ids: tuple[str, ...]
    after: int = 0
    limit: int = 1000


class FinishErasure(Command, frozen=True):
    """The erasure is done: what the ledger keeps of it, and nothing else."""

    job_id: str
    scope: str | None
    proof: dict[str, Any]
