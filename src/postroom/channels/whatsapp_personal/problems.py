"""What can go wrong between the bridge and WhatsApp, as the codes of its answers."""

from enum import IntEnum


class BridgeProblem(IntEnum):
    REFUSED = -1
    UNKNOWN = -2
    NOT_CONNECTED = -3
    LOGGED_OUT = -4
    RATE_LIMITED = -5


# Words of whatsmeow, by what they mean for a message: it was surely not sent, or surely refused.
_NOT_SENT = (
    "client is nil",
    "not connected",
    "not logged in",
    "doesn't contain a device",
    "failed to refresh media",
    "upload",
)


def classify_problem(text: str) -> BridgeProblem:
    """What nobody knows may have been sent, so it is not repeated."""
    said = text.lower()
    if "error 429" in said or "rate-overlimit" in said:
        return BridgeProblem.RATE_LIMITED
    if "timed out" in said or "disconnected" in said:
        return BridgeProblem.UNKNOWN
    if any(words in said for words in _NOT_SENT):
        return BridgeProblem.NOT_CONNECTED
    if "server returned error" in said:
        return BridgeProblem.REFUSED
    return BridgeProblem.UNKNOWN
