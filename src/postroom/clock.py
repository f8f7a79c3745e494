"""The time, passed in so that tests can hold it still. All times are whole microseconds since 1970, UTC."""

import time
from datetime import UTC, datetime
from typing import Protocol

SECOND = 1_000_000


class Clock(Protocol):
    def now(self) -> int: ...


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1000


class ManualClock:
    """A clock for tests: it stands until it is moved."""

    def __init__(self, start: int = 1_800_000_000 * SECOND) -> None:
        self._now = start

    def now(self) -> int:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += round(seconds * SECOND)

    def set(self, now: int) -> None:
        self._now = now


def micros(seconds: float) -> int:
    return round(seconds * SECOND)


def from_datetime(moment: datetime) -> int:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * SECOND)


def iso(moment: int) -> str:
    text = datetime.fromtimestamp(moment / SECOND, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def file_stamp(moment: int) -> str:
    """To the second, for names of files: 20260131T120000."""
    return datetime.fromtimestamp(moment / SECOND, UTC).strftime("%Y%m%dT%H%M%S")
