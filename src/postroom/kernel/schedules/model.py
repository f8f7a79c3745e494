"""A schedule of a plain queue as it is kept, and how far it has come."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec

from postroom.clock import micros
from postroom.kernel.model import Document
from postroom.kernel.schedules.cron import Cron
from postroom.kernel.schedules.due import Missed

KIND = "queue_schedule"
PROGRESS = "queue_schedule.progress"
SOURCE = "schedule"


class QueueSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """What is published to which queue and when: by `cron` in `zone`, every so many seconds, or once.

    >>> room.schedule("nightly", "orders", {"report": "sales"}, cron="0 3 * * *", zone="Europe/Berlin").path
    'default/nightly'
    """

    scope: str
    name: str
    queue: str
    body: Any = None
    cron: str = ""
    zone: str = "UTC"
    every_s: float | None = None
    at: int | None = None
    missed: Missed = Missed.ONCE
    overlap: bool = False
    enabled: bool = True
    message_type: str = "message"
    priority_tier: str = "normal"
    labels: dict[str, Any] = {}
    created_at: int = 0
    updated_at: int = 0
    next_at: int | None = None
    """When it comes next; None when it never does, or is switched off."""
    last_at: int | None = None
    last_message_id: str | None = None
    published: int = 0
    problem: str = ""

    @property
    def path(self) -> str:
        return f"{self.scope}/{self.name}"

    def times(self, after: int) -> Iterator[int]:
        """All its times after a moment, in order."""
        if self.at is not None:
            return iter([self.at] if self.at > after else [])
        if self.every_s is None:
            return Cron(self.cron, self.zone).times(after)
        step = max(1, micros(self.every_s))
        # Also before it was made: a clock that was ahead may have been put back since.
        first = self.created_at + ((after - self.created_at) // step + 1) * step
        return count(first, step)


class QueueScheduleProgress(msgspec.Struct, frozen=True, kw_only=True):
    """All times up to `after` are dealt with. `tick` is the key under which its next time is found."""

    after: int
    next_at: int | None = None
    tick: str = ""
    last_at: int | None = None
    last_message_id: str | None = None
    published: int = 0
    problem: str = ""


OWN = frozenset(QueueSchedule.__struct_fields__) - {
    "scope",
    "name",
    "created_at",
    "updated_at",
    "next_at",
    "last_at",
    "last_message_id",
    "published",
    "problem",
}
_TOLD = ("next_at", "last_at", "last_message_id", "published", "problem")


def to_data(schedule: QueueSchedule) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(schedule).items() if name in OWN}


def to_progress(document: Document) -> QueueScheduleProgress:
    return msgspec.convert(document.data, QueueScheduleProgress)


def to_schedule(document: Document, progress: Document | None) -> QueueSchedule:
    scope, _, name = document.key.partition("/")
    told = {} if progress is None else {field: progress.data.get(field) for field in _TOLD}
    about = {"created_at": document.created_at, "updated_at": document.updated_at}
    return msgspec.convert({**document.data, **told, **about, "scope": scope, "name": name}, QueueSchedule)
