"""Logging in with a browser: a link that works once, and the cookie it is exchanged for.

The cookie is signed with a key made from the owner's token, so it outlives a restart and ends with the token.
"""

import hashlib
import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

import msgspec

from postroom.api.auth.owner_token import OwnerToken
from postroom.api.auth.record_file import RecordFile
from postroom.clock import SECOND, Clock
from postroom.errors import NotFound
from postroom.services import callers
from postroom.services.callers import Caller, CallerKind, PersonRole

COOKIE = "postroom_session"
SESSION_S = 7 * 24 * 3600
LINK_S = 15 * 60
MOST_LINKS = 100
PERSON_NAME = r"\w[\w .-]{0,39}"


class LoginSession(msgspec.Struct, frozen=True):
    """`role` and `person` of somebody whom the owner let in; neither of the owner."""

    name: str
    ends_at: int
    csrf: str
    role: PersonRole | None = None
    person: str = ""

    @property
    def caller(self) -> Caller:
        if self.role is None:
            return callers.owner(kind=CallerKind.BROWSER)
        return callers.person(self.person, self.role)


class KnownSession(msgspec.Struct):
    """Times are seconds. One that was seen but not begun here is known from then on."""

    began_at: int
    ends_at: int
    is_ended: bool = False
    role: str = "owner"
    person: str = ""


class Invitation(msgspec.Struct, frozen=True):
    """Whom a link logs in: the owner, or a person with a role."""

    ends_at: int
    role: PersonRole | None = None
    person: str = ""


class SessionNotFound(NotFound):
    """There is no login {name}. See GET /api/sessions."""

    code = "SESSION_NOT_FOUND"


class Logins:
    def __init__(self, owner: OwnerToken, clock: Clock, file: Path | None = None) -> None:
        """`file`: where it is kept which sessions there are and which were ended; links are beside it."""
        self._key = owner.signing_key
        self._clock = clock
        self._links = RecordFile(file and file.with_name(f"links-{file.name}"), Invitation)
        self._sessions = RecordFile(file, KnownSession)

    def new_link(self, role: PersonRole | None = None, person: str = "") -> str:
        """A code that logs in once, within a quarter of an hour: the owner, or a person with a role."""
        now = self._clock.now()
        code = secrets.token_urlsafe(32)
        with self._links.change() as links:
            for each in [digest for digest, link in links.items() if link.ends_at <= now]:
                del links[each]
            while len(links) >= MOST_LINKS:
                del links[next(iter(links))]
            links[_digest(code)] = Invitation(now + LINK_S * SECOND, role, person)
        return code

    def redeem(self, code: str) -> "Invitation | None":
        """Once; None for a code that was used before, or is too old."""
        if _digest(code) not in self._links.read():
            return None
        with self._links.change() as links:
            link = links.pop(_digest(code), None)
        return link if link is not None and link.ends_at > self._clock.now() else None

    def begin(self, role: PersonRole | None = None, person: str = "") -> str:
        """The value of a new session's cookie. Who it is stands in what is signed."""
        ends_at = self._clock.now() // SECOND + SESSION_S
        name = secrets.token_urlsafe(18)
        self._learn(name, ends_at, role, person)
        body = f"{name}.{ends_at}"
        if role is not None:
            body += f".{role}.{person.encode().hex()}"
        return f"{body}.{self._sign('session', body)}"

    def list_sessions(self) -> dict[str, KnownSession]:
        return self._standing(self._sessions.read())

    def end(self, name: str) -> None:
        """Its cookie is worth nothing from now on, wherever it is."""
        with self._sessions.change() as sessions:
            if name not in self._standing(sessions):
                raise SessionNotFound(name=name)
            sessions[name].is_ended = True

    def end_others(self, name: str) -> int:
        """All but this one; how many there were."""
        with self._sessions.change() as sessions:
            others = [each for each in self._standing(sessions) if each != name]
            for each in others:
                sessions[each].is_ended = True
        return len(others)

    def _standing(self, sessions: dict[str, KnownSession]) -> dict[str, KnownSession]:
        now = self._clock.now() // SECOND
        return {name: each for name, each in sessions.items() if not each.is_ended and each.ends_at > now}

    def _learn(self, name: str, ends_at: int, role: PersonRole | None, person: str) -> None:
        now = self._clock.now() // SECOND
        with self._sessions.change() as sessions:
            for each in [known for known, session in sessions.items() if session.ends_at <= now]:
                del sessions[each]
            sessions.setdefault(name, KnownSession(now, ends_at, role=role or "owner", person=person))

    def session(self, cookie_header: str) -> LoginSession | None:
        value = _cookie(cookie_header)
        body, dot, signature = value.rpartition(".")
        if not dot or not hmac.compare_digest(signature.encode(), self._sign("session", body).encode()):
            return None
        name, end, *who = body.split(".")
        if int(end) <= self._clock.now() // SECOND:
            return None
        role, person = (PersonRole(who[0]), bytes.fromhex(who[1]).decode()) if who else (None, "")
        known = self._sessions.read().get(name)
        if known is None:
            self._learn(name, int(end), role, person)
        elif known.is_ended:
            return None
        return LoginSession(name, int(end), self._sign("csrf", body), role, person)

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose} {text}".encode(), hashlib.sha256).hexdigest()


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "surrogateescape")).hexdigest()


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""
