"""What broken connections mean for a piece that was being sent over HTTP."""

import httpx2

from postroom.channels.errors import MaybeSent, NotSent, SendProblem

# No connection was made, or the request did not leave: nothing can have been sent.
_UNSENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.WriteError,
    httpx2.ProxyError,
)


def explain_connection(error: Exception, platform: str) -> SendProblem | None:
    """None when the error is not one of the connection."""
    if isinstance(error, _UNSENT):
        return NotSent(f"{platform} could not be reached.")
    if isinstance(error, httpx2.TransportError):
        return MaybeSent(f"The connection to {platform} broke before it answered.")
    return None
