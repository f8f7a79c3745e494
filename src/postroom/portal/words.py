"""Times, money and numbers as people read them."""

from datetime import UTC, datetime

from htpy import Renderable, time

from postroom.clock import SECOND, iso

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def tell_span(seconds: float) -> str:
    """The two largest units at most: 2 h 5 min."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    left, parts = int(seconds), []
    for size, unit in _UNITS:
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
    if not parts:
        return f"{left} s"
    return " ".join(parts[:2])


def tell_ago(moment: int, now: int) -> str:
    seconds = (now - moment) / SECOND
    if seconds < 0:
        return f"in {tell_span(-seconds)}"
    if seconds < 45:
        return "now"
    for size, unit in _UNITS:
        if seconds >= size * 0.95:
            return f"{max(1, round(seconds / size))} {unit} ago"
    return "1 min ago"


def show_ago(moment: int | None, now: int) -> Renderable | str:
    """How long ago, with the exact time behind it."""
    if not moment:
        return "–"
    return time(datetime=iso(moment), title=tell_moment(moment))[tell_ago(moment, now)]


def tell_moment(moment: int) -> str:
    return datetime.fromtimestamp(moment / SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def tell_money(usd: float) -> str:
    """Cents as far as they count."""
    if usd == 0:
        return "$0"
    return f"${usd:,.2f}" if usd >= 0.1 else f"${usd:.4f}"


def tell_size(size_bytes: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size_bytes >= size:
            return f"{size_bytes / size:.1f} {unit}"
    return f"{size_bytes} bytes"


def tell_count(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def cut(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
