"""When a cron expression comes due, in a time zone, over changes of its clock.

Five fields are minute, hour, day, month and weekday; six begin with the second; seven end with the year. A
time that a clock put forward leaves out comes right after the gap; a time that a clock put back shows twice
comes the first time only, unless minute or hour is `*`: such an expression follows real time.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import tzlocal
from cronsim import CronSim, CronSimError

from postroom.clock import SECOND
from postroom.errors import InvalidField
from postroom.kernel.schedules.errors import InvalidCron

LONGEST = 200
FIRST_YEAR, LAST_YEAR = 1970, 9999

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_LAST_DAY = re.compile(r"([0-7]|SUN|MON|TUE|WED|THU|FRI|SAT)#?L")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Cron:
    """An expression that was understood. `next(after)` is its first time after a moment."""

    def __init__(self, text: str, zone: str = "UTC") -> None:
        if not isinstance(text, str) or len(text) > LONGEST:
            raise InvalidCron(
                cron=str(text)[:LONGEST], problem=f"it must be a text of up to {LONGEST} characters"
            )
        self.text = text
        self.zone = known_zone(zone)
        fields = NICKNAMES.get(text.strip().lower(), text).upper().split()
        if not 5 <= len(fields) <= 7:
            problem = (
                "five fields are needed (minute hour day month weekday), six with seconds, seven with a year"
            )
            raise InvalidCron(cron=text, problem=problem)
        self._years = _years(text, fields.pop()) if len(fields) == 7 else None
        fields = ["*" if field == "?" else field for field in fields]
        fields[-1] = _LAST_DAY.sub(_numbered_day, fields[-1])
        try:
            whole = CronSim(" ".join(fields), datetime(2000, 1, 1, tzinfo=UTC))
        except (CronSimError, AssertionError, ValueError) as error:
            raise InvalidCron(cron=text, problem=_problem(str(error))) from None
        # Seconds are counted within the minutes that the other fields give, so that they change nothing else.
        self._minutes = " ".join(fields[-5:])
        self._seconds = sorted(whole.seconds)

    def next(self, after: int) -> int | None:
        """The first time after a moment; None when there is none in the fifty years that follow."""
        return next(self.times(after), None)

    def times(self, after: int) -> Iterator[int]:
        """All times after a moment, in order."""
        start = _moment(after)
        last = after
        while start is not None:
            leap = None
            for minute in self._minutes_from(start):
                if self._years is not None and minute.year not in self._years:
                    leap = self._next_year(minute.year)
                    break
                begins = _micros(minute)
                for second in self._seconds:
                    moment = begins + second * SECOND
                    # A clock put back leads into times that have been.
                    if moment > last:
                        yield moment
                        last = moment
            start = leap

    def _minutes_from(self, start: datetime) -> Iterator[datetime]:
        try:
            begin = start.astimezone(self.zone).replace(second=0, microsecond=0)
            begin = (begin.astimezone(UTC) - timedelta(seconds=1)).astimezone(self.zone)
            yield from CronSim(self._minutes, begin)
        except (OverflowError, ValueError):
            return  # beyond the last year there is

    def _next_year(self, year: int) -> datetime | None:
        assert self._years is not None
        later = min((y for y in self._years if y > year), default=None)
        return None if later is None else datetime(later, 1, 1, tzinfo=self.zone)


def known_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        raise InvalidField("zone", f"{name!r} is no known time zone; write one like Europe/Berlin") from None


def house_zone() -> str:
    """The zone of this machine, by its name, since a mere offset knows no summer time."""
    try:
        return known_zone(tzlocal.get_localzone_name() or "UTC").key
    except (InvalidField, ValueError, LookupError, OSError):
        return "UTC"


def _moment(micros: int) -> datetime | None:
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None


def _micros(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


def _numbered_day(match: re.Match[str]) -> str:
    day = match[1]
    return f"{_DAYS.index(day) if day in _DAYS else day}L"


def _years(text: str, field: str) -> frozenset[int] | None:
    if field in ("*", "?"):
        return None
    years: set[int] = set()
    for part in field.split(","):
        match = re.fullmatch(r"(?:\*|(\d{4})(?:-(\d{4}))?)(?:/(\d{1,4}))?", part)
        if match is None:
            raise InvalidCron(cron=text, problem=f'the year "{field}" is not understood')
        first, last, step = match.groups()
        begin = int(first) if first else FIRST_YEAR
        end = int(last) if last else LAST_YEAR if first is None or step else begin
        if not FIRST_YEAR <= begin <= end or step == "0":
            raise InvalidCron(cron=text, problem=f'the year "{field}" is not understood')
        years.update(range(begin, end + 1, int(step or 1)))
    return frozenset(years)


def _problem(said: str) -> str:
    if said.startswith("Bad "):
        return f"the {said.removeprefix('Bad ').replace('-', ' ')} is not understood"
    return said.lower() or "it is not understood"
