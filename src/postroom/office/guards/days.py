"""The day a moment belongs to, and when that day ends, in a time zone."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from postroom.clock import SECOND


class Days:
    def __init__(self, zone: str = "UTC") -> None:
        self.zone = zone
        self._zone = ZoneInfo(zone)

    def of(self, now: int) -> str:
        return self._local(now).date().isoformat()

    def end(self, day: str) -> int:
        """The midnight that ends a day, also when the clocks change. Never ask for that of now: between two
        looks at the clock it may be another day."""
        tomorrow = date.fromisoformat(day) + timedelta(days=1)
        return round(datetime.combine(tomorrow, time.min, self._zone).timestamp()) * SECOND

    def _local(self, now: int) -> datetime:
        return datetime.fromtimestamp(now / SECOND, UTC).astimezone(self._zone)
