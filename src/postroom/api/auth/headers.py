"""Headers that every answer carries, and those that let a page of an admitted origin read it."""

from typing import TYPE_CHECKING

from starlette.types import Message, Send

if TYPE_CHECKING:
    from postroom.api.auth.auth_middleware import AuthAttempt

METHODS = "GET, HEAD, PUT, POST, DELETE, PATCH"
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_ALWAYS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"content-security-policy", POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]
_ALONE = (b"cross-origin-resource-policy", b"same-origin")
_EXPOSED = (b"access-control-expose-headers", b"Retry-After, WWW-Authenticate")
_VARY = (b"vary", b"Origin")
_NO_STORE = (b"cache-control", b"no-store")


def with_headers(send: Send, origin: str | None) -> Send:
    """`origin` is the admitted one that asks, if it is another than our own."""
    extra = [*_ALWAYS, _VARY]
    if origin is None:
        extra.append(_ALONE)
    else:
        extra += [(b"access-control-allow-origin", origin.encode("latin-1")), _EXPOSED]

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message["headers"])
            names = {name for name, _ in headers}
            headers += [pair for pair in extra if pair[0] not in names or pair is _VARY]
            if b"cache-control" not in names:
                headers.append(_NO_STORE)
            message = {**message, "headers": headers}
        await send(message)

    return send_with_headers


def preflight_headers(attempt: "AuthAttempt") -> dict[str, str]:
    headers = {"allow": METHODS}
    if not attempt.headers["access-control-request-method"]:
        return headers
    headers["access-control-allow-methods"] = METHODS
    if asked := attempt.headers["access-control-request-headers"]:
        headers["access-control-allow-headers"] = asked
    if attempt.headers["access-control-request-private-network"]:
        headers["access-control-allow-private-network"] = "true"
    headers["access-control-max-age"] = "600"
    headers["vary"] = "Access-Control-Request-Headers"
    return headers
