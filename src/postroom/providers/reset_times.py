"""When a rate limit ends, from headers and from the sentences programs print. Unknown is None, no guess."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from postroom.clock import SECOND, from_datetime, micros

_UNIT_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_SPAN = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|d|days?|h|hours?|hrs?|m|mins?|minutes?|s|secs?|seconds?)(?![a-z])",
    re.I,
)
_EPOCH = re.compile(r"\|\s*(\d{10})(?:\d{3})?\b")
_IN = re.compile(
    r"\b(?:try again|retry|resets?|available again|wait)[^.\n]{0,20}?\b(?:in|for)\s+([^\n|·]+)", re.I
)
_ISO = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_AT = re.compile(
    r"\b(?:resets?|try again|retry|available again)\s+(?:at\s+|on\s+)?"
    r"(?:(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?"
    r"(?:,?\s+(?P<year>\d{4}))?,?\s*(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]m)?\b(?:\s*\((?P<zone>[A-Za-z_+/-]+)\))?",
    re.I,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def from_headers(headers: Mapping[str, str], now: int) -> int | None:
    """Microseconds since 1970 from `Retry-After` in any of its forms."""
    millis = headers.get("retry-after-ms", "")
    if _is_number(millis):
        return now + micros(float(millis) / 1000)
    after = headers.get("retry-after", "").strip()
    if _is_number(after):
        return now + micros(float(after))
    if after:
        try:
            return from_datetime(parsedate_to_datetime(after))
        except ValueError:
            return None
    return None


def from_text(text: str, now: int, local: tzinfo | None = None) -> int | None:
    """The moment a sentence names: `|1760000000`, `try again in 1h 5m`, `resets 3pm (Europe/Berlin)`, ISO."""
    if match := _EPOCH.search(text):
        return int(match[1]) * SECOND
    if (match := _IN.search(text)) and (seconds := _span_seconds(match[1])):
        return now + micros(seconds)
    if match := _ISO.search(text):
        try:
            return from_datetime(datetime.fromisoformat(match[0]))
        except ValueError:
            return None
    if match := _AT.search(text):
        return _clock_time(match, now, local)
    return None


def from_epoch(seconds: object) -> int | None:
    """A plausible moment given in seconds or milliseconds since 1970."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds < 1e9:
        return None
    return round((seconds / 1000 if seconds > 1e11 else seconds) * SECOND)


def _span_seconds(text: str) -> float:
    total, end = 0.0, 0
    for match in _SPAN.finditer(text):
        if text[end : match.start()].strip(" ,") not in ("", "and", "about", "~"):
            break
        unit = match[2].lower()
        total += float(match[1]) * _UNIT_SECONDS["ms" if unit.startswith(("ms", "mil")) else unit[0]]
        end = match.end()
    return total


def _clock_time(match: re.Match[str], now: int, local: tzinfo | None) -> int | None:
    if not match["half"] and not match["minute"]:
        return None  # a bare number is no time of day
    zone = local
    if match["zone"]:
        try:
            zone = ZoneInfo(match["zone"])
        except (ZoneInfoNotFoundError, ValueError):
            return None
    here = datetime.fromtimestamp(now / SECOND, UTC).astimezone(zone)
    hour = int(match["hour"]) % 12 + (12 if match["half"].lower() == "pm" else 0) if match["half"] else None
    try:
        moment = here.replace(
            hour=int(match["hour"]) if hour is None else hour,
            minute=int(match["minute"] or 0),
            second=0,
            microsecond=0,
        )
        if match["month"]:
            month = _MONTHS.index(match["month"][:3].lower()) + 1
            moment = moment.replace(
                month=month, day=int(match["day"]), year=int(match["year"] or moment.year)
            )
            if not match["year"] and moment < here - timedelta(days=1):
                moment = moment.replace(year=moment.year + 1)
        elif moment <= here:
            moment += timedelta(days=1)
    except ValueError:
        return None
    return from_datetime(moment)


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"\d+(\.\d+)?", text.strip()))
