"""When a call is sent again: after a refusal that names a time, or, if it does no harm, without an answer."""

from postroom.client.calls import Call
from postroom.client.errors import ServiceError

TRIES = 4
PAUSE_S = 0.2
LONGEST_S = 60.0


def pause_after(error: Exception, call: Call, tried: int, patience_s: float) -> float | None:
    """Seconds until the next try; None when there is to be none."""
    if tried >= TRIES:
        return None
    if isinstance(error, ServiceError):
        if error.status == 429 and error.service_code == "RATE_LIMITED":
            seconds = float(error.retry_after or 1)
            return seconds if seconds <= patience_s else None
        if error.status not in (502, 503, 504):
            return None
    if not call.again:
        return None
    return min(PAUSE_S * 2**tried, LONGEST_S)
