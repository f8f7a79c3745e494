"""Logging in with a browser: a link that works once, and the cookie it is exchanged for.

The cookie is signed with a key made from the owner's token, so it outlives a restart and ends with the token.
"""

import hashlib
import hmac
import secrets
from http.cookies import CookieError, SimpleCookie

import msgspec

from postroom.api.auth.owner_token import OwnerToken
from postroom.clock import SECOND, Clock

COOKIE = "postroom_session"
SESSION_S = 7 * 24 * 3600
LINK_S = 15 * 60
MOST_LINKS = 100


class LoginSession(msgspec.Struct, frozen=True):
    name: str
    ends_at: int
    csrf: str


class Logins:
    def __init__(self, owner: OwnerToken, clock: Clock) -> None:
        self._key = owner.signing_key
        self._clock = clock
        self._links: dict[bytes, int] = {}

    def new_link(self) -> str:
        """A code that logs in once, within a quarter of an hour."""
        now = self._clock.now()
        self._links = {code: end for code, end in self._links.items() if end > now}
        while len(self._links) >= MOST_LINKS:
            del self._links[next(iter(self._links))]
        code = secrets.token_urlsafe(32)
        self._links[_digest(code)] = now + LINK_S * SECOND
        return code

    def redeem(self, code: str) -> bool:
        end = self._links.pop(_digest(code), 0)
        return end > self._clock.now()

    def begin(self) -> str:
        """The value of a new session's cookie."""
        ends_at = self._clock.now() // SECOND + SESSION_S
        body = f"{secrets.token_urlsafe(18)}.{ends_at}"
        return f"{body}.{self._sign('session', body)}"

    def session(self, cookie_header: str) -> LoginSession | None:
        value = _cookie(cookie_header)
        body, dot, signature = value.rpartition(".")
        if not dot or not hmac.compare_digest(signature.encode(), self._sign("session", body).encode()):
            return None
        name, _, end = body.partition(".")
        if int(end) <= self._clock.now() // SECOND:
            return None
        return LoginSession(name, int(end), self._sign("csrf", body))

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose} {text}".encode(), hashlib.sha256).hexdigest()


def _digest(code: str) -> bytes:
    return hashlib.sha256(code.encode("utf-8", "surrogateescape")).digest()


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""
