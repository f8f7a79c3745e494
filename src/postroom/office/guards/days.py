"""The day a moment belongs to, and when that day ends, in a time zone."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from postroom.clock import SECOND


class Days:
    def __init__(self, zone: str = "UTC") -> None:
        self.zone = zone
        self._zone = ZoneInfo(zone)

    def of(self, now: int) -> str:
        return self._local(now).date().isoformat()

    def end(self, now: int) -> int:
        """The next midnight, also on days when the clocks change."""
        tomorrow = self._local(now).date() + timedelta(days=1)
        return round(datetime.combine(tomorrow, time.min, self._zone).timestamp()) * SECOND

    def _local(self, now: int) -> datetime:
        return datetime.fromtimestamp(now / SECOND, UTC).astimezone(self._zone)
