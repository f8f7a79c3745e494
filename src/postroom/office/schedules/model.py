"""A schedule as it is kept, and how far it has come."""

from typing import Any

import msgspec

from postroom.clock import iso
from postroom.kernel.model import Document
from postroom.kernel.schedules.cron import Cron
from postroom.kernel.schedules.due import Missed

SCHEDULE = "schedule"
PROGRESS = "schedule.progress"
LABEL = "schedule.label"

CHANNEL = "schedule"
SENDER = "Scheduler"


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """What to send to whom and when: by `cron` in `zone`, or once `at` a moment."""

    id: str
    label: str
    to: str
    text: str
    cron: str = ""
    zone: str = "UTC"
    at: int | None = None
    channel: str = CHANNEL
    sender: str = SENDER
    sender_id: str = ""
    missed: Missed = Missed.ONCE
    enabled: bool = True
    created_at: int = 0
    updated_at: int = 0

    def next(self, after: int) -> int | None:
        """Its first time after a moment."""
        if self.at is not None:
            return self.at if self.at > after else None
        return Cron(self.cron, self.zone).next(after)

    def data(self) -> dict[str, Any]:
        fields = msgspec.to_builtins(self)
        for name in ("id", "created_at", "updated_at"):
            del fields[name]
        return fields


class ScheduleProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a schedule has come: all its times up to `after` are dealt with."""

    after: int
    last_slot: int | None = None
    fired: int = 0
    problem: str = ""


class StoredSchedule(msgspec.Struct, frozen=True):
    """A schedule and its progress with the versions they were read in."""

    schedule: Schedule
    version: int
    progress: ScheduleProgress
    progress_version: int


def schedule_of(document: Document) -> Schedule:
    own = {"id": document.key, "created_at": document.created_at, "updated_at": document.updated_at}
    return msgspec.convert({**document.data, **own}, Schedule)


def filed(document: Document, progress: Document | None) -> StoredSchedule:
    """Without progress of its own, a schedule goes on from when it was made."""
    schedule = schedule_of(document)
    if progress is None:
        return StoredSchedule(schedule, document.version, ScheduleProgress(after=schedule.created_at), 0)
    return StoredSchedule(
        schedule, document.version, msgspec.convert(progress.data, ScheduleProgress), progress.version
    )


def slot_key(schedule: str, slot: int) -> str:
    """The idempotency key under which the message of one time is sent."""
    try:
        return f"schedule/{schedule}/{iso(slot)}"
    except (OverflowError, ValueError):
        return f"schedule/{schedule}/{slot}"
