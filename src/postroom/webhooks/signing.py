"""Signatures: so that a receiver knows who sent a request, and that it is not an old one sent again."""

import hashlib
import hmac

SIGNATURE = "X-ScaiGrid-Signature"
TIMESTAMP = "X-ScaiGrid-Timestamp"
BOTH = "X-Postroom-Signature"
TOLERANCE_S = 300
MOST_DIGITS = 15


def headers(secret: str, body: bytes, now_s: int) -> dict[str, str]:
    """The plain signature of the body, and one that covers the time as well."""
    return {
        SIGNATURE: f"sha256={_sign(secret, body)}",
        TIMESTAMP: str(now_s),
        BOTH: f"t={now_s},v1={_sign(secret, f'{now_s}.'.encode() + body)}",
    }


def verify(secret: str, body: bytes, signature: str, now_s: int, tolerance_s: int = TOLERANCE_S) -> bool:
    """For receivers: whether the header `X-Postroom-Signature` fits the body and is fresh."""
    parts = {name: value for name, _, value in (part.partition("=") for part in signature.split(","))}
    sent = parts.get("t", "")
    if not (sent.isascii() and sent.isdecimal() and len(sent) <= MOST_DIGITS):
        return False
    if abs(now_s - int(sent)) > tolerance_s:
        return False
    given = parts.get("v1", "").encode("utf-8", "replace")
    return hmac.compare_digest(given, _sign(secret, f"{sent}.".encode() + body).encode())


def _sign(secret: str, data: bytes) -> str:
    return hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()
